//go:build cluster

package clustertest

import (
	"os"
	"strings"
	"testing"

	"weir/models/store/storetest"
	"weir/storage"
	"weir/storage/rules"
	"weir/storage/storagetest"
	"weir/workspaces/kube"
)

// In real pods, the mounts express the rules, but for what is listed.
func TestMountsFollowTheRules(t *testing.T) {
	s := storetest.Open(t, "sqlite")
	verdicts, err := storage.NewVerdicts(s)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := os.MkdirTemp("", "weir-rules-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(shared) })
	if err := os.Chmod(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	dirs, err := storage.New(shared, user, user, verdicts)
	if err != nil {
		t.Fatal(err)
	}
	dirs.FollowsLinks = true
	if os.Geteuid() == 0 {
		if err := dirs.UseIDs(t.Context(), rules.IDRange{First: 1_900_700_000, Last: 1_900_799_999}); err != nil {
			t.Fatal(err)
		}
	}
	w := storagetest.New(t, s, dirs)
	c := config(t)
	c.Storage, c.SharedRoot = kube.Storage{HostPath: dirs.Root()}, dirs.Root()
	c.Directories, c.EmptyDir = directoriesOf, storage.EmptyDir
	b := &storagetest.Notebooks{World: w, Runtime: open(t, c), Patience: patience}
	storagetest.Run(t, w, storagetest.Medium{Try: b.Try, Start: b.StartKernels, Mounts: true, Pods: true})
}

// directoriesOf are the shared directories of a project, as volumes.
func directoriesOf(project int64) []kube.Directory {
	all := []kube.Directory{{Name: "project", Path: rules.ProjectDir(project)}}
	for _, dir := range rules.PublicDirs() {
		all = append(all, kube.Directory{Name: strings.ReplaceAll(dir[1:], "_", "-"), Path: dir, ReadOnly: true})
	}
	return all
}
