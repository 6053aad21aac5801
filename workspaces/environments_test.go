package workspaces_test

import (
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/workspaces"
)

// installations are those in the catalog, by command.
func (b *world) installations(t *testing.T, c *workspaces.Catalog) map[string]models.Environment {
	t.Helper()
	all, err := c.Environments(b.ctx, b.root)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]models.Environment{}
	for _, e := range all {
		if e.DiscoveredKey != nil {
			found[e.Command[0]] = e
		}
	}
	return found
}

// A check that runs out of time on a busy machine says nothing: what was known stays, and
// what is new can be launched until a later check ends.
func TestUncheckedInstallation(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		access, err := policies.NewAccess()
		if err != nil {
			t.Fatal(err)
		}
		catalog := workspaces.NewCatalog(b.store, access)
		found := func(key, command, version string) models.Environment {
			e := models.Environment{DiscoveredKey: &key, Name: "JupyterLab in " + command, Language: "python",
				LanguageVersion: version, Command: []string{command}}
			if version != "" {
				e.Name, e.Versions = "Python "+version, map[string]string{"torch": "2.9.0"}
			}
			return e
		}
		register := func(list ...models.Environment) map[string]models.Environment {
			t.Helper()
			if err := catalog.Register(b.ctx, list); err != nil {
				t.Fatal(err)
			}
			return b.installations(t, catalog)
		}
		known := register(found("/usr:lab", "/bin/lab", "3.12"))["/bin/lab"]

		all := register(found("/bin:lab", "/bin/lab", ""), found("/provisional:lab", "/opt/lab", ""))
		if e := all["/bin/lab"]; e.Version != known.Version || !e.Unavailable.Empty() || e.Versions["torch"] == "" || e.Unchecked() {
			t.Errorf("a check without a result changed %+v to %+v", known, e)
		}
		fresh := all["/opt/lab"]
		if !fresh.Unchecked() || len(all) != 2 {
			t.Fatalf("registered: %+v", all)
		}
		in := b.ask("unchecked", models.LaunchParameters{})
		in.EnvironmentID = fresh.ID
		if _, err := b.Launch(b.ctx, b.actor, in); err != nil {
			t.Errorf("launched: %v", err)
		}

		all = register(found("/usr:lab", "/bin/lab", "3.12"), found("/opt:lab", "/opt/lab", "3.13"))
		e := all["/opt/lab"]
		if e.ID != fresh.ID || *e.DiscoveredKey != "/opt:lab" || e.Name != "Python 3.13" || e.LanguageVersion != "3.13" || len(all) != 2 {
			t.Errorf("checked later: %+v", all)
		}
		if e := register(found("/usr:lab", "/bin/lab", "3.12"))["/opt/lab"]; e.Unavailable.Empty() {
			t.Errorf("gone: %+v", e)
		}
	})
}

// The start page of JupyterLab is refused where this machine's check has found that it is not there.
func TestStartPageThatAnEnvironmentHas(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		key := "/usr:jupyter-notebook"
		classic := models.Environment{DiscoveredKey: &key, Name: "classic", Language: "python", LanguageVersion: "3.11", DefaultPath: "/tree",
			Command: []string{"/bin/sleep", "600"}, Versions: map[string]string{"notebook": "6.4", "ipykernel": "6.17"}}
		storetest.InTx(t, b.store, func(q *store.Queries) error { return q.CreateEnvironment(&classic) })
		in := b.ask("a", models.LaunchParameters{Path: new("/lab/tree/x.ipynb")})
		in.EnvironmentID = classic.ID
		want(t, second(b.Launch(b.ctx, b.actor, in)), models.KindInvalid, "its start page is /tree")
		in.Request.Path = new("/code/?folder=/home/jovyan/team")
		want(t, second(b.Launch(b.ctx, b.actor, in)), models.KindInvalid, "VS Code is not installed in this environment")
		in.EnvironmentID = b.env.ID // of which nobody knows what it has
		if _, err := b.Launch(b.ctx, b.actor, in); err != nil {
			t.Errorf("an environment that an administrator has added: %v", err)
		}
	})
}

// Environments of one notebook program with different start pages stay apart, also while they are
// unchecked, and know each other's pages.
func TestEnvironmentOfVSCode(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		access, err := policies.NewAccess()
		if err != nil {
			t.Fatal(err)
		}
		catalog := workspaces.NewCatalog(b.store, access)
		command := []string{"/bin/sleep", "600"}
		found := func(version string) (list []models.Environment) {
			for _, page := range []string{"/tree", models.VSCode.Path} {
				list = append(list, models.Environment{DiscoveredKey: new("/usr" + version + ":" + page), Name: "With " + page, Language: "python",
					LanguageVersion: version, Command: command, DefaultPath: page, Versions: map[string]string{models.CodeServer: "4.100.3"}})
			}
			return list
		}
		for _, version := range []string{"", "3.11", ""} {
			if err := catalog.Register(b.ctx, found(version)); err != nil {
				t.Fatal(err)
			}
		}
		half := found("3.11")
		half[0].Versions, half[1].LanguageVersion = nil, "" // the check of VS Code alone ran out of time
		if err := catalog.Register(b.ctx, half); err != nil {
			t.Fatal(err)
		}
		all, err := catalog.Environments(b.ctx, b.root)
		if err != nil {
			t.Fatal(err)
		}
		others := map[string]string{"/tree": "VS Code", models.VSCode.Path: "Jupyter"}
		for _, e := range all {
			other, ok := others[e.DefaultPath]
			if !ok {
				continue
			}
			delete(others, e.DefaultPath)
			if e.LanguageVersion != "3.11" || !e.Unavailable.Empty() {
				t.Errorf("registered: %+v", e)
			}
			in := b.ask("of "+other, models.LaunchParameters{})
			in.EnvironmentID = e.ID
			w, err := b.Launch(b.ctx, b.actor, in)
			if err != nil {
				t.Fatal(err)
			}
			v, err := b.View(b.ctx, b.actor, w.ID)
			if err != nil || len(v.Apps) != 2 || len(v.OtherApps()) != 1 || v.OtherApps()[0].Name != other {
				t.Errorf("of %s: %v beside the start page %s: %v", e.Name, v.OtherApps(), e.DefaultPath, err)
			}
		}
		if len(others) > 0 {
			t.Errorf("not registered: %v", others)
		}
	})
}

func TestUncheckedInstallationDoesNotMatchVersions(t *testing.T) {
	key := "/opt:lab"
	constraints, err := workspaces.ParseVersionConstraints("version_constraints", "torch>=2")
	if err != nil {
		t.Fatal(err)
	}
	_, refused := workspaces.MatchEnvironments([]models.Environment{{DiscoveredKey: &key, Language: "python"}}, constraints, plenty)
	if len(refused) != 1 || refused[0].Reasons[0].String() != "has not been checked for torch yet" {
		t.Errorf("refused: %+v", refused)
	}
}
