package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/models"
	"weir/storage/rules"
)

// While a project's directory is missing, as after an unfinished move, nothing is made in
// its place, and its use is not forgotten.
func TestMissingDirectory(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.write(t, w.at("weights"), "content")
		w.settled(t, 7)
		dir := filepath.Join(w.path, rules.ProjectDir(w.project))
		if err := os.Rename(dir, dir+".moved"); err != nil {
			t.Fatal(err)
		}
		if got := w.read(t, w.at("weights")); got != string(models.KindNotFound) {
			t.Errorf("read: %s", got)
		}
		_, err := w.Write(t.Context(), w.acting, w.project, w.at("new"), strings.NewReader("new"), 3, Condition{})
		wants(t, "write", models.KindNotFound, err)
		if err := w.Measure(t.Context(), w.project); err == nil {
			t.Error("nothing was measured as nothing")
		}
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("there is a directory: %v", err)
		}
		if err := os.Rename(dir+".moved", dir); err != nil {
			t.Fatal(err)
		}
		if got := w.read(t, w.at("weights")); got != "content" {
			t.Errorf("read: %s", got)
		}
		w.settled(t, 7)
	})
}
