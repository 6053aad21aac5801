package serving

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"weir/models"
	"weir/workspaces/shard"
)

// numbered is a deployment of a project.
func numbered(id int64) models.Deployment {
	return models.Deployment{ProjectID: 3, ID: id, Vocabulary: 16}
}

// stored is a store with the whole model of two deployments of a project.
func stored(t *testing.T) *Store {
	t.Helper()
	s := &Store{Dir: filepath.Join(t.TempDir(), "deployments")}
	folder := llama(t, llamaConfig, nil)
	m, err := shard.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := shard.Plan(m.Facts, shard.Request{Load: shard.Load{Batch: 1, Context: 8}, Devices: []models.ModelDevice{{MemoryBytes: 1 << 30, TFLOPS: 1}}})
	if err != nil || !plan.Possible {
		t.Fatalf("%+v, %v", plan, err)
	}
	var writers sync.WaitGroup
	for deployment := range int64(2) {
		writers.Go(func() {
			d := numbered(deployment + 1)
			d.Plan, d.Batch, d.Context = plan, 1, 8
			list, err := s.Write(t.Context(), d, folder)
			if err != nil || len(list) != 1 {
				t.Errorf("%v, %v", list, err)
			}
		})
	}
	writers.Wait()
	return s
}

// What is not written yet is not taken for nothing later.
func TestGenerationBeforeItIsWritten(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	if g, err := s.Generation(numbered(1)); err != nil || g.End != nil {
		t.Errorf("%+v, %v", g, err)
	}
	dir := s.directory(numbered(1))
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = Generation{End: []int32{2}}.keep(dir, fstest.MapFS{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if g, err := s.Generation(numbered(1)); err != nil || len(g.End) != 1 {
		t.Errorf("%+v, %v", g, err)
	}
}

// The tokenizer is kept with the deployment; what is not implemented in it is said.
func TestKeptTokenizer(t *testing.T) {
	for content, noText := range map[string]string{"": "", "{}": `the model "" is not implemented`} {
		folder := llama(t, llamaConfig, nil)
		if content != "" {
			folder[tokenizerName] = &fstest.MapFile{Data: []byte(content)}
		}
		dir, s := t.TempDir(), &Store{}
		if err := (Generation{End: []int32{2}}).keep(dir, folder); err != nil {
			t.Fatal(err)
		}
		if g, err := s.readKept(dir, 16); err != nil || g.Text != nil || g.NoText != noText || len(g.End) != 1 {
			t.Errorf("%+v, %v", g, err)
		}
	}
}

// Deployments of one model at once have the same file, which is deleted after the last of them.
func TestSweep(t *testing.T) {
	s := stored(t)
	sweep := func(live ...int64) (parts []string) {
		t.Helper()
		if err := s.Sweep(t.Context(), func(context.Context) ([]int64, error) { return live, nil }); err != nil {
			t.Fatal(err)
		}
		parts, err := filepath.Glob(filepath.Join(s.Dir, "project-3", "*.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		return parts
	}
	if parts := sweep(1, 2); len(parts) != 1 {
		t.Errorf("%v", parts)
	}
	for _, deployment := range []int64{1, 2} {
		if _, err := os.Stat(filepath.Join(s.Directory(numbered(deployment), 0), "part.safetensors")); err != nil {
			t.Error(err)
		}
		if g, err := s.Generation(numbered(deployment)); err != nil || !slices.Equal(g.End, []int32{2}) {
			t.Errorf("%+v, %v", g, err)
		}
	}
	if err := s.Remove(numbered(1)); err != nil {
		t.Fatal(err)
	}
	if parts := sweep(2); len(parts) != 1 {
		t.Errorf("%v", parts)
	}
	s.writing.RLock() // as while parts are written
	if parts := sweep(); len(parts) != 1 {
		t.Errorf("%v", parts)
	}
	s.writing.RUnlock()
	if err := s.Remove(numbered(2)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "project-3", ".unfinished-x"), nil, 0o600); err != nil { // of a server that was killed
		t.Fatal(err)
	}
	sweep()
	if list, err := os.ReadDir(s.Dir); err != nil || len(list) > 0 {
		t.Errorf("%v is left, %v", list, err)
	}
	if g, err := s.Generation(numbered(2)); err != nil || g.End != nil {
		t.Errorf("%+v, %v", g, err)
	}
}

// A deployment that has the parts of another one needs nothing of that any more. A second attempt is
// one, also after half of the first.
func TestLinkParts(t *testing.T) {
	s := stored(t)
	if err := s.WriteWorker(numbered(1), 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.LinkParts(numbered(3), 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sweep(t.Context(), func(context.Context) ([]int64, error) { return []int64{3}, nil }); err != nil {
		t.Fatal(err)
	}
	if list, err := filepath.Glob(filepath.Join(s.Directory(numbered(3), 0), "*.py")); err != nil || len(list) > 0 {
		t.Errorf("it has the program of another one: %v, %v", list, err)
	}
	for _, name := range []string{"part.safetensors", "part.json"} {
		if info, err := os.Stat(filepath.Join(s.Directory(numbered(3), 0), name)); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if g, err := s.Generation(numbered(3)); err != nil || !slices.Equal(g.End, []int32{2}) {
		t.Errorf("%+v, %v", g, err)
	}
	if err := s.LinkParts(numbered(4), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of one that is not there: %v", err)
	}
}

// What an earlier version has written is found, and each start of a part has the present worker.
func TestEarlierLayout(t *testing.T) {
	s := stored(t)
	for deployment := range int64(2) { // beside the directory of the project
		dir := s.directory(numbered(deployment + 1))
		if err := os.Rename(dir, filepath.Join(s.Dir, filepath.Base(dir))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sweep(t.Context(), func(context.Context) ([]int64, error) { return []int64{1}, nil }); err != nil {
		t.Fatal(err)
	}
	if g, err := s.Generation(numbered(1)); err != nil || !slices.Equal(g.End, []int32{2}) {
		t.Errorf("%+v, %v", g, err)
	}
	at := filepath.Join(s.Directory(numbered(1), 0), workerName)
	err := os.WriteFile(at, []byte("of another version"), 0o600)
	if err := errors.Join(err, s.WriteWorker(numbered(1), 0)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(at)
	if text, failed := os.ReadFile(at); err != nil || failed != nil || info.Mode().Perm() != 0o644 || !strings.HasPrefix(string(text), `"""The reference worker`) {
		t.Errorf("the worker has %d bytes: %v, %v, %v", len(text), info, err, failed)
	}
	if list, err := filepath.Glob(filepath.Join(filepath.Dir(at), "*.py")); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	list, err := filepath.Glob(filepath.Join(s.Dir, "*"))
	if want := filepath.Join(s.Dir, ProjectDir(3)); err != nil || !slices.Equal(list, []string{want}) {
		t.Errorf("%v is left, %v", list, err)
	}
}
