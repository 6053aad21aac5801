package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestClosure(t *testing.T) {
	packages := parsePackages([]byte(strings.Join([]string{
		"installed\tjupyter-notebook\t6.4\tpython3-notebook (= 6.4), python3:any\t",
		"installed\tpython3-notebook\t6.4\tlibc6 (>= 2.34), missing | mawk, dpkg\t",
		"triggers-pending\tmawk\t1\t\tawk",
		"installed\tpython3\t3.11\t, awk\t",
		"installed\tlibc6:amd64\t2.36\tlibgcc-s1\tlibc (= 2.36)",
		"installed\tlibgcc-s1:amd64\t12\tlibc6\t", // each needs the other
		"installed\tdpkg\t1\tlibzstd1\t",
		"installed\tlibzstd1\t1\t\t",
		"config-files\tgone\t1\t\t",
	}, "\n")))
	got, err := closure(packages, []string{"jupyter-notebook"}, []string{"dpkg"})
	want := []string{"jupyter-notebook", "libc6", "libgcc-s1", "mawk", "python3", "python3-notebook"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if p := packages["libc6"]; p.name != "libc6:amd64" || p.version != "2.36" {
		t.Errorf("%+v", p)
	}
	if _, err := closure(packages, []string{"gone"}, nil); err == nil || !strings.Contains(err.Error(), "package gone") {
		t.Errorf("a package that was removed: %v", err)
	}
}

// A link is added with its target, a module with its compiled files.
func TestTree(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(root, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(in("usr/bin/__pycache__"), 0o755))
	must(os.Symlink("usr/bin", in("bin")))
	must(os.WriteFile(in("usr/bin/tool.py"), []byte("tool"), 0o755))
	must(os.WriteFile(in("usr/bin/__pycache__/tool.cpython-311.pyc"), nil, 0o644))
	must(os.WriteFile(in("usr/bin/__pycache__/other.cpython-311.pyc"), nil, 0o644))
	must(os.Symlink(in("bin/second"), in("usr/bin/first")))
	must(os.Symlink("tool.py", in("usr/bin/second")))
	must(os.Symlink("circle", in("usr/bin/circle")))
	must(os.Symlink("nothing", in("usr/bin/broken")))

	files := tree{}
	for _, name := range []string{"bin/first", "usr/bin/circle", "usr/bin/broken", "usr/missing", "missing/file"} {
		must(files.add(in(name)))
	}
	want := []string{in("usr/bin/__pycache__/tool.cpython-311.pyc"), in("usr/bin/broken"), in("usr/bin/circle"),
		in("usr/bin/first"), in("usr/bin/second"), in("usr/bin/tool.py")}
	if got := sorted(files); !slices.Equal(got, want) {
		t.Errorf("%q\nnot %q", got, want)
	}
	if must(files.add("/usr/share/doc/bash")); len(files) != len(want) {
		t.Error("documentation was added")
	}
}

func TestSetuidIsDropped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	when := time.Unix(1e9, 0)
	if err := errors.Join(os.Chmod(path, 0o755|os.ModeSetuid), os.Chtimes(path, when, when)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := writeFile(tar.NewWriter(&out), path, info); err != nil {
		t.Fatal(err)
	}
	header, err := tar.NewReader(&out).Next()
	if err != nil || header.Mode != 0o755 || header.Uid != 0 || !header.ModTime.Equal(when) {
		t.Errorf("%+v, %v", header, err)
	}
}

// contents reads an archive and checks the digest of every blob.
func contents(t *testing.T, path string) map[string][]byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := map[string][]byte{}
	for r := tar.NewReader(f); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		if found[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(found[header.Name])
		if digest, ok := strings.CutPrefix(header.Name, "blobs/sha256/"); ok && digest != hex.EncodeToString(sum[:]) {
			t.Errorf("%s has another content", header.Name)
		}
	}
}

// The documents of an archive lead from its index to its layer.
func TestArchive(t *testing.T) {
	im := Image{"weir.local/x:1", filepath.Join(t.TempDir(), "new", "x.tar")}
	fill := func(w *tar.Writer) error { return archive{w}.document("hello", []byte("there")) }
	if err := im.write(settings{User: "7:7"}, fill); err != nil {
		t.Fatal(err)
	}
	files := contents(t, im.Path)
	decode := func(name string, into any) {
		t.Helper()
		if err := json.Unmarshal(files[name], into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	var (
		i struct{ Manifests []descriptor }
		m struct {
			Config descriptor
			Layers []descriptor
		}
		c struct {
			Config settings
			RootFS struct {
				DiffIDs []string `json:"diff_ids"`
			}
		}
	)
	decode("index.json", &i)
	if i.Manifests[0].Annotations["io.containerd.image.name"] != im.Name {
		t.Errorf("%+v", i)
	}
	decode(blob(i.Manifests[0].Digest), &m)
	decode(blob(m.Config.Digest), &c)
	layer := files[blob(m.Layers[0].Digest)]
	if c.Config.User != "7:7" || c.RootFS.DiffIDs[0] != m.Layers[0].Digest || m.Layers[0].Size != int64(len(layer)) {
		t.Errorf("%+v, %+v, a layer of %d bytes", c, m, len(layer))
	}
	if header, err := tar.NewReader(bytes.NewReader(layer)).Next(); err != nil || header.Name != "hello" || header.Size != 5 {
		t.Errorf("%+v, %v", header, err)
	}

	broken := Image{"x", filepath.Join(filepath.Dir(im.Path), "broken.tar")}
	if err := broken.write(settings{}, func(*tar.Writer) error { return errors.New("no") }); err == nil {
		t.Error("a layer that failed made an image")
	}
	if left, _ := os.ReadDir(filepath.Dir(im.Path)); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// The pause program compiles, and its image is built once.
func TestPause(t *testing.T) {
	cache := t.TempDir()
	im, err := Pause(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	files := contents(t, im.Path)
	if len(files) != 5 {
		t.Errorf("%d files", len(files))
	}
	if err := os.WriteFile(im.Path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Pause(t.Context(), cache); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(im.Path); err != nil || info.Size() != 0 {
		t.Errorf("it was made again: %v, %v", info, err)
	}
}
