package workspaces_test

import (
	"errors"
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

// goneInstallation was found on this machine, and is not there any more.
func (b *world) goneInstallation(t *testing.T) models.Environment {
	t.Helper()
	catalog := b.catalog(t)
	found := models.Environment{DiscoveredKey: new("/gone:lab"), Name: "gone", Language: "python", LanguageVersion: "3.11", Command: []string{"/bin/gone"}}
	if err := errors.Join(catalog.Register(b.ctx, []models.Environment{found}), catalog.Register(b.ctx, nil)); err != nil {
		t.Fatal(err)
	}
	return b.installations(t, catalog)["/bin/gone"]
}

// No workspace, run or part of a deployment starts without a command: no runtime uses an image's
// own entry point.
func TestEnvironmentWithoutCommand(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		catalog := b.catalog(t)
		in := workspaces.EnvironmentInput{Name: "image", Language: "python", LanguageVersion: "3.11", Image: "registry/image"}
		for _, in.NoNotebook = range []bool{false, true} {
			_, err := catalog.Create(b.ctx, b.root, in)
			want(t, err, models.KindInvalid, "command: must specify a program")
		}
		in.Command = []string{"/bin/jupyter"}
		e, err := catalog.Create(b.ctx, b.root, in)
		if err != nil || !e.Unavailable.Empty() {
			t.Fatalf("with a command: %+v, %v", e, err)
		}
		in.Command, in.Version = nil, e.Version
		_, err = catalog.Update(b.ctx, b.root, e.ID, in)
		want(t, err, models.KindInvalid, "command: must specify a program")
		if all, err := catalog.Environments(b.ctx, b.root); err != nil || len(all) != 2 || len(all[0].Command) == 0 || len(all[1].Command) == 0 {
			t.Errorf("after the refusals: %+v, %v", all, err)
		}
	})
}

// catalog is the catalog of environments.
func (b *world) catalog(t *testing.T) *workspaces.Catalog {
	t.Helper()
	access, err := policies.NewAccess()
	if err != nil {
		t.Fatal(err)
	}
	return workspaces.NewCatalog(b.store, access)
}

// A check that runs out of time on a busy machine says nothing: what was known stays, and
// what is new can be launched until a later check ends.
func TestUncheckedInstallation(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		catalog := b.catalog(t)
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
		catalog := b.catalog(t)
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
