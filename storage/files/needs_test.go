package files

import (
	"os"
	"strings"
	"testing"

	"weir/models"
	"weir/models/store/storetest"
	"weir/storage/rules"
)

func TestModelNeeds(t *testing.T) {
	w := newWorld(t, storetest.Open(t, "sqlite"), t.TempDir())
	ctx := t.Context()
	if _, err := w.MakeDirectory(ctx, w.acting, w.project, w.at("llama")); err != nil {
		t.Fatal(err)
	}
	w.write(t, w.at("llama/weights"), "1")
	needs := func(path models.FilePath) models.ModelNeeds {
		t.Helper()
		at, n, err := w.ModelNeeds(ctx, w.acting, w.project, path)
		if err != nil || at != path {
			t.Errorf("%s: %s, %v", path, at, err)
		}
		return n
	}
	if n := needs(w.at("llama")); n != (models.ModelNeeds{}) {
		t.Errorf("%+v", n)
	}
	want := models.ModelNeeds{Environment: "PyTorch", VersionConstraints: "torch>=2.5", Minimum: models.Minimum{GPUs: 1, GPUMemoryMiB: 40960}}
	if _, err := w.SetModelNeeds(ctx, w.acting, w.project, w.at("llama"), want); err != nil {
		t.Fatal(err)
	}
	if n := needs(w.at("llama")); n != want {
		t.Errorf("%+v", n)
	}
	if n := needs(w.at("llama/weights")); n != want { // of its directory
		t.Errorf("%+v", n)
	}
	other := models.ModelNeeds{Environment: "JAX"}
	if _, err := w.SetModelNeeds(ctx, w.acting, w.project, w.at("llama/weights"), other); err != nil {
		t.Fatal(err)
	}
	if n := needs(w.at("llama/weights")); n != other || !strings.Contains(w.read(t, w.at("llama/weights.weir.yaml")), "environment: JAX") {
		t.Errorf("%+v, %q", n, w.read(t, w.at("llama/weights.weir.yaml")))
	}
	_, _, err := w.ModelNeeds(ctx, w.acting, w.project, w.at("none"))
	wants(t, "no model", models.KindNotFound, err)
	_, _, err = w.ModelNeeds(ctx, w.acting, w.project, w.at("\xff"))
	wants(t, "no text", models.KindInvalid, err)
	w.rule(t, w.at("llama"), models.AccessRead, models.DownloadInherit)
	_, err = w.SetModelNeeds(ctx, w.acting, w.project, w.at("llama"), want)
	wants(t, "read only", models.KindForbidden, err)
	w.rule(t, w.at("llama"), models.AccessNone, models.DownloadInherit)
	_, _, err = w.ModelNeeds(ctx, w.acting, w.project, w.at("llama"))
	wants(t, "hidden", models.KindNotFound, err)
}

// hostileManifests are refused.
var hostileManifests = []string{
	"environment: [a]", "other: 1", "a", "- a", "environment: \"\\x00\"", "environment: " + strings.Repeat("x", 101), "minimum: {gpus: -1}", "minimum: {gpus: 99999999999999999999}",
	"environment: a\nenvironment: b", "&a [*a]", strings.Repeat("[", 10_000), strings.Repeat("x", maxNeeds+1), "!!binary x",
	"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c]",
}

func TestHostileManifests(t *testing.T) {
	w := newWorld(t, storetest.Open(t, "sqlite"), t.TempDir())
	if _, err := w.MakeDirectory(t.Context(), w.acting, w.project, w.at("m")); err != nil {
		t.Fatal(err)
	}
	for _, text := range hostileManifests {
		w.write(t, w.at("m/weir.yaml"), text)
		_, _, err := w.ModelNeeds(t.Context(), w.acting, w.project, w.at("m"))
		if models.KindOf(err) != models.KindConflict || len(err.Error()) > 1000 {
			t.Errorf("%.50q: %v", text, err)
		}
	}
	if err := os.Remove(w.disk(w.at("m/weir.yaml"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", w.disk(w.at("m/weir.yaml"))); err != nil {
		t.Fatal(err)
	}
	_, _, err := w.ModelNeeds(t.Context(), w.acting, w.project, w.at("m"))
	wants(t, "a link", models.KindConflict, err)
}

// FuzzManifest parses anything: it is refused, or what it says is within bounds.
func FuzzManifest(f *testing.F) {
	for _, text := range append(hostileManifests, "environment: a\nminimum:\n  gpus: 1\n", "") {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		n, err := parseNeeds(content)
		if err != nil && models.KindOf(err) != models.KindConflict {
			t.Fatal(err)
		}
		var p models.Problems
		if n.Check(&p); p.Err() != nil {
			t.Fatalf("%+v: %v", n, p)
		}
	})
}

// FuzzPath decodes, resolves and reads any path: nothing outside of what the member may
// read is found, whatever it is.
func FuzzPath(f *testing.F) {
	w := newWorld(f, storetest.Open(f, "sqlite"), f.TempDir())
	w.write(f, w.at("a"), "inside")
	for _, path := range []string{"/etc/passwd", "%2e%2e/%2e%2e", "/notebook/1/project_model/a", "/notebook/1/project_model/../../../weir.db", "/home/jovyan/..", "/notebook/1//a", "/.weir/projects/1/tmp", "%00", "%zz", "/notebook/1/project_model/%ff"} {
		f.Add(path)
	}
	root := rules.ProjectDir(w.project)
	f.Fuzz(func(t *testing.T, text string) {
		path, err := models.ParseFilePath(text)
		if err != nil {
			return
		}
		if again, err := models.ParseFilePath(path.String()); err != nil || again != path {
			t.Fatalf("%q, %v", again, err)
		}
		e, err := w.Stat(t.Context(), w.acting, w.project, path)
		if models.KindOf(err) == models.KindInternal {
			t.Fatal(err)
		}
		if found := string(e.Path); err == nil && !rules.Within(found, root) && rules.Fixed(found) != strings.HasPrefix(found, "/public_") {
			t.Fatalf("%q leads to %q", path, found)
		}
	})
}
