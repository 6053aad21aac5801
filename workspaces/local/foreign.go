package local

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/models"
	"weir/workspaces/runtime"
)

// Foreign finds what runs on this machine of the installation of owner, but was started by
// another generation of it or from other run directories than dirs, or in one of dirs by
// another owner.
func Foreign(owner runtime.Owner, dirs ...string) ([]models.Foreign, error) {
	all, err := allMarkedProcesses()
	instances := map[mark]bool{}
	for m := range all {
		parent := filepath.Dir(m.dir)
		here := slices.Contains(dirs, parent)
		installation := strings.HasPrefix(m.owner, owner.Installation+".") && !movedTo(owner, m, dirs)
		if _, ok := parseDirectory(filepath.Base(m.dir)); ok && (here && !owner.Owns(m.owner) || installation && !here) {
			instances[m] = true
		}
	}
	count := map[models.Foreign]int{}
	for m := range instances {
		count[models.Foreign{Owner: m.owner, Place: filepath.Dir(m.dir)}]++
	}
	return runtime.CountForeign(count), err
}

// movedTo reports whether an instance of the owner is in one of dirs, which was moved since
// it was started.
func movedTo(owner runtime.Owner, m mark, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		in := &instance{dir: filepath.Join(dir, filepath.Base(m.dir)), owner: owner}
		b, err := os.ReadFile(in.stateFile())
		return err == nil && json.Unmarshal(b, &in.record) == nil && in.Dir == m.dir && !in.foreign()
	})
}
