package split

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"weir/models"
	"weir/workspaces/shard"
)

const config = `{"architectures":["LlamaForCausalLM"],"hidden_size":64,"num_attention_heads":4,"num_experts":2,"tie_word_embeddings":true}`

// writeModel writes a model of four layers in two files, with layers of some KiB. Tensors of
// each layer are in both files.
func writeModel(t testing.TB, kib int64) (dir string) {
	t.Helper()
	dir = t.TempDir()
	random := rand.NewChaCha8([32]byte{1})
	for file := range 2 {
		names := []string{}
		if file == 0 {
			names = append(names, "model.embed_tokens.weight", "model.scalar")
		}
		for layer := range 4 {
			names = append(names, fmt.Sprintf("model.layers.%d.mlp.experts.%d.w", layer, file), fmt.Sprintf("model.layers.%d.attn.%d", layer, file))
		}
		header, at := []string{`"__metadata__":{"format":"pt"}`}, int64(0)
		for _, name := range names {
			header = append(header, fmt.Sprintf(` "%s" : {"dtype":"U8","shape":[%d],"data_offsets":[%d, %d]}`, name, kib<<10, at, at+kib<<10))
			at += kib << 10
		}
		text := "{" + strings.Join(header, ",\n") + "}   "
		data := make([]byte, at)
		if _, err := random.Read(data); err != nil {
			t.Fatal(err)
		}
		content := append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), data...)
		write(t, filepath.Join(dir, fmt.Sprintf("model-%d.safetensors", file)), content)
	}
	write(t, filepath.Join(dir, "config.json"), []byte(config))
	return dir
}

func write(t testing.TB, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func root(t testing.TB, dir string) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// planned is a model with a plan over two devices.
func planned(t testing.TB, dir string, split models.ModelSplit, first float64) (shard.Model, models.ModelPlan) {
	t.Helper()
	m, err := shard.Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	device := models.ModelDevice{MemoryBytes: m.Facts.Bytes, TFLOPS: 1}
	second := device
	device.MemoryBytes = int64(float64(device.MemoryBytes) * first)
	plan, err := shard.Plan(m.Facts, shard.Request{Load: shard.Load{Batch: 1, Context: 1}, ServiceType: "x", Devices: []models.ModelDevice{device, second},
		Presets: []shard.Preset{{ServiceType: "x", Split: split, Combine: models.CombineSum}}})
	if err != nil || !plan.Possible || len(plan.Parts) != 2 {
		t.Fatalf("%+v, %v", plan, err)
	}
	return m, plan
}

// split splits a model and returns how many parts were written.
func split(t testing.TB, dir string, to *os.Root, kind models.ModelSplit, first float64) (manifest Manifest, written int) {
	t.Helper()
	m, plan := planned(t, dir, kind, first)
	manifest, err := Split(t.Context(), os.DirFS(dir), to, m, plan)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range manifest.Parts {
		if p.Written {
			written++
		}
	}
	return manifest, written
}

// same reports files of a directory that have other bytes in another one.
func same(t testing.TB, dir, other string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil || len(list) == 0 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, e := range list {
		a, errA := os.ReadFile(filepath.Join(dir, e.Name()))
		b, errB := os.ReadFile(filepath.Join(other, e.Name()))
		if err := errors.Join(errA, errB); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v", e.Name(), err)
		}
	}
}

// What is split and merged has the same bytes, and each part is a valid file with the tensors
// of its layers or experts.
func TestSplitAndMerge(t *testing.T) {
	dir := writeModel(t, 700)
	for _, kind := range []models.ModelSplit{models.SplitLayers, models.SplitExperts} {
		out, merged := t.TempDir(), t.TempDir()
		manifest, written := split(t, dir, root(t, out), kind, 0.9)
		if written != 2 {
			t.Errorf("%s: %d parts were written", kind, written)
		}
		for i, p := range manifest.Parts {
			content, err := os.ReadFile(filepath.Join(out, p.File))
			if err != nil {
				t.Fatal(err)
			}
			f, err := shard.ReadFile(p.File, bytes.NewReader(content), int64(len(content)))
			if err != nil || f.Header%8 != 0 || f.Metadata["format"] != "pt" {
				t.Errorf("%s: part %d: %v, %+v", kind, i, err, f)
			}
			has := map[string]bool{}
			for _, tensor := range f.Tensors {
				has[tensor.Name] = true
			}
			expert := fmt.Sprintf("model.layers.0.mlp.experts.%d.w", i)
			if kind == models.SplitExperts && (!has[expert] || has[fmt.Sprintf("model.layers.0.mlp.experts.%d.w", 1-i)] || !has["model.layers.3.attn.0"]) ||
				kind == models.SplitLayers && (has["model.layers.0.attn.1"] != (i == 0) || !has["model.embed_tokens.weight"]) {
				t.Errorf("%s: part %d has %v", kind, i, has)
			}
		}
		if _, err := Merge(t.Context(), os.DirFS(out), root(t, merged)); err != nil {
			t.Fatal(err)
		}
		same(t, dir, merged)
	}
}

// Parts that are there are not written again, also when the others change.
func TestUnchangedParts(t *testing.T) {
	dir, out := writeModel(t, 10), t.TempDir()
	first, _ := split(t, dir, root(t, out), models.SplitExperts, 0.9)
	again, written := split(t, dir, root(t, out), models.SplitExperts, 0.9)
	if written != 0 || again.Parts[0].File != first.Parts[0].File {
		t.Errorf("%d parts were written again", written)
	}
	file := filepath.Join(dir, "model-1.safetensors")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)-20<<10] ^= 1 // in expert 1 of the last layer
	write(t, file, content)
	changed, written := split(t, dir, root(t, out), models.SplitExperts, 0.9)
	if written != 1 || changed.Parts[0].File != first.Parts[0].File || changed.Parts[1].File == first.Parts[1].File {
		t.Errorf("%d parts were written: %+v", written, changed.Parts)
	}
}

// canceled is a folder whose reads end when many bytes were read.
type canceled struct {
	fs.FS
	cancel context.CancelFunc
	after  int64
}

type canceledFile struct {
	*os.File
	folder *canceled
}

func (c *canceled) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	if file, ok := f.(*os.File); ok {
		return canceledFile{file, c}, err
	}
	return f, err
}

func (f canceledFile) ReadAt(b []byte, at int64) (int, error) {
	if f.folder.after -= int64(len(b)); f.folder.after < 0 {
		f.folder.cancel()
	}
	return f.File.ReadAt(b, at)
}

// A split that ended early goes on with the part at which it was, and nothing has a name that
// is not whole.
func TestResume(t *testing.T) {
	dir, out := writeModel(t, 3000), t.TempDir()
	m, plan := planned(t, dir, models.SplitLayers, 0.9)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Split(ctx, &canceled{os.DirFS(dir), cancel, m.Facts.Bytes * 3 / 4}, root(t, out), m, plan)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if _, err := ReadManifest(os.DirFS(out)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a manifest: %v", err)
	}
	write(t, filepath.Join(out, unfinished+"-1"), []byte("of a process that was killed"))
	if _, written := split(t, dir, root(t, out), models.SplitLayers, 0.9); written != 1 {
		t.Errorf("%d parts were written", written)
	}
	merged := t.TempDir()
	if _, err := Merge(t.Context(), os.DirFS(out), root(t, merged)); err != nil {
		t.Fatal(err)
	}
	same(t, dir, merged)
	if list, err := fs.Glob(os.DirFS(out), unfinished+"*"); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// Writers of the same parts at once write each part once, and all of it.
func TestWritersAtOnce(t *testing.T) {
	dir, out := writeModel(t, 1000), t.TempDir()
	m, plan := planned(t, dir, models.SplitLayers, 0.9)
	var writers sync.WaitGroup
	var written atomic.Int64
	for range 4 {
		to := root(t, out)
		writers.Go(func() {
			manifest, err := Split(t.Context(), os.DirFS(dir), to, m, plan)
			if err != nil {
				t.Error(err)
			}
			for _, p := range manifest.Parts {
				if p.Written {
					written.Add(1)
				}
			}
		})
	}
	writers.Wait()
	if written.Load() != 2 {
		t.Errorf("%d parts were written", written.Load())
	}
	merged := t.TempDir()
	if _, err := Merge(t.Context(), os.DirFS(out), root(t, merged)); err != nil {
		t.Fatal(err)
	}
	same(t, dir, merged)
}

// A writer that waits for another one ends with its context.
func TestWaitingWriter(t *testing.T) {
	dir, out := writeModel(t, 10), t.TempDir()
	first, err := lock(t.Context(), root(t, out))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	m, plan := planned(t, dir, models.SplitLayers, 0.9)
	ctx, cancel := context.WithTimeout(t.Context(), 2*lockPause)
	defer cancel()
	if _, err := Split(ctx, os.DirFS(dir), root(t, out), m, plan); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// A model whose files change while they are read is refused with that reason.
func TestChangedWhileRead(t *testing.T) {
	dir, out := writeModel(t, 10), t.TempDir()
	m, plan := planned(t, dir, models.SplitLayers, 0.9)
	if err := os.Truncate(filepath.Join(dir, "model-1.safetensors"), m.Files[1].Size-1); err != nil {
		t.Fatal(err)
	}
	if _, err := Split(t.Context(), os.DirFS(dir), root(t, out), m, plan); models.KindOf(err) != models.KindConflict {
		t.Errorf("got %v", err)
	}
	if list, err := os.ReadDir(out); err != nil || slices.ContainsFunc(list, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), unfinished) }) {
		t.Errorf("%v, %v", list, err)
	}
}

// Damaged parts and manifests are refused.
func TestHostileParts(t *testing.T) {
	dir := writeModel(t, 10)
	for reason, change := range map[string]func(out string, m Manifest){
		"its content is not that of its name": func(out string, m Manifest) {
			content, err := os.ReadFile(filepath.Join(out, m.Parts[0].File))
			if err != nil {
				t.Fatal(err)
			}
			content[len(content)-1] ^= 1
			write(t, filepath.Join(out, m.Parts[0].File), content)
		},
		"was not found": func(out string, m Manifest) {
			if err := os.Remove(filepath.Join(out, m.Parts[1].File)); err != nil {
				t.Fatal(err)
			}
		},
		"has version 2": func(out string, _ Manifest) { write(t, filepath.Join(out, ManifestName), []byte(`{"version":2}`)) },
		`has a file "../x"`: func(out string, _ Manifest) {
			write(t, filepath.Join(out, ManifestName), []byte(`{"version":1,"config":{"../x":""}}`))
		},
		"is not the name of a file in the folder": func(out string, _ Manifest) {
			write(t, filepath.Join(out, ManifestName), []byte(`{"version":1,"files":[{"name":"../x","size":10,"header":"e30="}]}`))
		},
	} {
		out := t.TempDir()
		manifest, _ := split(t, dir, root(t, out), models.SplitLayers, 0.9)
		change(out, manifest)
		if _, err := Merge(t.Context(), os.DirFS(out), root(t, t.TempDir())); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("got %v, want %s", err, reason)
		}
	}
}
