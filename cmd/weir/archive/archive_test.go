package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const roomy = 1 << 40

var at = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// saved makes a backup of a database, a key and shared directories, and returns its path and
// that of the shared directories.
func saved(t *testing.T) (file, shared string) {
	t.Helper()
	dir := t.TempDir()
	shared = filepath.Join(dir, "data", "shared")
	for _, path := range []string{"notebook/1/project_model", "public_model"} {
		if err := os.MkdirAll(filepath.Join(shared, path), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(shared, "notebook/1/project_model/模型 1.bin"), strings.Repeat("weights", 100), 0o640)
	for _, path := range []string{"caf\xe9", `of\windows`} { // a name can have any byte but two
		if err := os.Mkdir(filepath.Join(shared, path), 0o750); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(shared, path, "\xff\\"), "odd", 0o640)
	}
	put(t, filepath.Join(shared, "run.sh"), "#!/bin/sh\n", 0o755)
	if err := os.Symlink("../public_model", filepath.Join(shared, "notebook/link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(shared, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	sources := []Source{{"weir.db", filepath.Join(dir, "weir.db")}, {"settings/key", filepath.Join(dir, "key")}}
	put(t, sources[0].File, "the database", 0o600)
	put(t, sources[1].File, "the key", 0o600)
	file = filepath.Join(dir, "backup.tar.gz")
	got, err := Write(t.Context(), file, Manifest{Version: "1", Schema: 37, Installation: "a1", Generation: 1, CreatedAt: at}, sources, shared)
	if err != nil {
		t.Fatal(err)
	}
	if got.Skipped != 1 || got.Size == 0 || got.Entries != 14 {
		t.Errorf("saved %+v", got)
	}
	return file, shared
}

func put(t *testing.T, file, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestRoundTrip(t *testing.T) {
	file, shared := saved(t)
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("the archive: %v, %v", info.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".weir-backup-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	to := t.TempDir()
	m, end, err := Extract(t.Context(), file, to, roomy)
	if err != nil {
		t.Fatal(err)
	}
	if m.Schema != 37 || m.Installation != "a1" || !m.CreatedAt.Equal(at) || len(m.Files) != 2 || end.Entries != 14 {
		t.Errorf("%+v, %+v", m, end)
	}
	for name, want := range map[string]string{"weir.db": "the database", "settings/key": "the key", "shared/run.sh": "#!/bin/sh\n",
		"shared/caf\xe9/\xff\\": "odd", "shared/of\\windows/\xff\\": "odd",
		"shared/notebook/1/project_model/模型 1.bin": strings.Repeat("weights", 100)} {
		b, err := os.ReadFile(filepath.Join(to, name))
		if err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	for _, name := range []string{"run.sh", "notebook/1", "notebook/1/project_model/模型 1.bin"} {
		was, err1 := os.Stat(filepath.Join(shared, name))
		is, err2 := os.Stat(filepath.Join(to, SharedDir, name))
		if err1 != nil || err2 != nil || was.Mode() != is.Mode() || !was.ModTime().Equal(is.ModTime()) {
			t.Errorf("%s is %v, was %v (%v, %v)", name, is, was, err1, err2)
		}
	}
	if link, err := os.Readlink(filepath.Join(to, "shared/notebook/link")); err != nil || link != "../public_model" {
		t.Errorf("the link leads to %q, %v", link, err)
	}
}

func TestWriteReplacesAndLeavesNothing(t *testing.T) {
	file, _ := saved(t)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Write(t.Context(), file, Manifest{}, nil, ""); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("over an archive: %v", err)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the archive was changed: %v", err)
	}
	dir := t.TempDir()
	if _, err := Write(t.Context(), filepath.Join(dir, "b"), Manifest{}, nil, filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing directory was saved")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// unpacked is an archive as a list of entries, to make hostile ones of.
type unpacked []entry

type entry struct {
	header  tar.Header
	content string
}

func unpack(t *testing.T, file string) (list unpacked) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, entry{*h, string(b)})
	}
}

// pack writes entries with a right end, unless they have one.
func pack(t *testing.T, list unpacked, withEnd bool) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hostile.tar.gz")
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := writer{ctx: t.Context(), tar: tar.NewWriter(z), digest: newDigest()}
	for i, e := range list {
		e.header.Size = int64(len(e.content))
		if e.header.Typeflag != tar.TypeReg {
			e.header.Size = 0
		}
		e.header.Format, e.header.PAXRecords = tar.FormatPAX, nil
		if err := w.tar.WriteHeader(&e.header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w.tar, e.content); err != nil && e.header.Typeflag == tar.TypeReg {
			t.Fatal(err)
		}
		if i > 0 {
			w.digest.begin(e.header.Typeflag, strings.TrimSuffix(e.header.Name, "/"), e.header.Linkname, e.header.Mode, e.header.Size)
			io.WriteString(w.digest, e.content)
		}
	}
	if withEnd {
		if err := w.document(endName, w.digest.end(), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.tar.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// without the end, which pack writes anew.
func (u unpacked) body() unpacked { return u[: len(u)-1 : len(u)-1] }

func (u unpacked) with(kind byte, name, link, content string) unpacked {
	return append(u.body(), entry{tar.Header{Typeflag: kind, Name: name, Linkname: link, Mode: 0o644, ModTime: at}, content})
}

// manifest changes the manifest.
func (u unpacked) manifest(t *testing.T, change func(*Manifest)) unpacked {
	t.Helper()
	var m Manifest
	if err := json.Unmarshal([]byte(u[0].content), &m); err != nil {
		t.Fatal(err)
	}
	change(&m)
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	list := append(unpacked{}, u.body()...)
	list[0].content = string(b)
	return list
}

func TestHostileArchives(t *testing.T) {
	file, _ := saved(t)
	good := unpack(t, file)
	if _, _, err := Check(t.Context(), pack(t, good.body(), true), roomy); err != nil {
		t.Fatalf("packed anew, the good one is refused: %v", err)
	}
	named := func(name string) func(*Manifest) { return func(m *Manifest) { m.Files[0].Name = name } }
	for what, c := range map[string]struct {
		list unpacked
		says string
	}{
		"a path upwards":          {good.with(tar.TypeReg, "shared/../../evil", "", "x"), "leads out of it"},
		"an absolute path":        {good.with(tar.TypeReg, "/etc/evil", "", "x"), "leads out of it"},
		"another spelling":        {good.with(tar.TypeReg, "shared//evil", "", "x"), "leads out of it"},
		"a backslash":             {good.with(tar.TypeReg, `shared\evil`, "", "x"), "nothing says"},
		"beside the directories":  {good.with(tar.TypeReg, "authorized_keys", "", "x"), "nothing says"},
		"a hard link":             {good.with(tar.TypeLink, "shared/evil", "weir.db", ""), "links between files"},
		"a device":                {good.with(tar.TypeBlock, "shared/sda", "", ""), "links between files and devices"},
		"a FIFO":                  {good.with(tar.TypeFifo, "shared/fifo", "", ""), "neither a file nor a directory"},
		"through a link":          {good.with(tar.TypeReg, "shared/notebook/link/evil", "", "x"), "not in a directory of it"},
		"in no directory":         {good.with(tar.TypeReg, "shared/none/evil", "", "x"), "not in a directory of it"},
		"a database that is one":  {good.manifest(t, named("../weir.db")), "names a file"},
		"the manifest as file":    {good.manifest(t, named(manifestName)), "names a file"},
		"a file in shared":        {good.manifest(t, named("shared/weir.db")), "names a file"},
		"a file twice":            {good.manifest(t, func(m *Manifest) { m.Files[0].Name = m.Files[1].Name }), "is wrong about"},
		"a negative size":         {good.manifest(t, func(m *Manifest) { m.Files[0].Size = -1 }), "is wrong about"},
		"another size":            {good.manifest(t, func(m *Manifest) { m.Files[0].Size++ }), "where its manifest says"},
		"another sum":             {good.manifest(t, func(m *Manifest) { m.Files[0].SHA256 = strings.Repeat("0", 64) }), "has the SHA-256"},
		"a file less":             {good.manifest(t, func(m *Manifest) { m.Files = m.Files[:1] }), "nothing says what"},
		"unannounced directories": {good.manifest(t, func(m *Manifest) { m.Shared = false }), "nothing says what"},
		"a later format":          {good.manifest(t, func(m *Manifest) { m.Format = 2 }), "format 2"},
		"no manifest":             {good[1:].body(), "its first entry is"},
		"a huge manifest":         {append(unpacked{{good[0].header, strings.Repeat(" ", maxDocument) + good[0].content}}, good.body()[1:]...), "at most"},
		"no JSON":                 {append(unpacked{{good[0].header, "{"}}, good.body()[1:]...), "cannot be read"},
	} {
		t.Run(what, func(t *testing.T) {
			refused(t, pack(t, c.list, true), roomy, c.says)
		})
	}
	t.Run("without its end", func(t *testing.T) { refused(t, pack(t, good.body(), false), roomy, "ends before") })
	t.Run("content changed", func(t *testing.T) {
		changed := append(unpacked{}, good...)
		changed[len(changed)-2].content = strings.ToUpper(changed[len(changed)-2].content)
		refused(t, pack(t, changed, false), roomy, "its end says")
	})
	t.Run("more after the end", func(t *testing.T) {
		refused(t, pack(t, append(append(unpacked{}, good...), good[1]), false), roomy, "follows its last entry")
	})
	t.Run("larger than the disk", func(t *testing.T) { refused(t, file, 700, "too large") })
	t.Run("a bomb", func(t *testing.T) {
		refused(t, pack(t, good.with(tar.TypeReg, "shared/zeros", "", strings.Repeat("\x00", 50<<20)), true), 20<<20, "there is room for 20 MiB")
	})
}

// Every truncation is noticed, and every changed byte, unless what is read is the same: a
// repetition can be compressed in several ways.
func TestDamagedArchives(t *testing.T) {
	file, _ := saved(t)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, whole, err := Check(t.Context(), file, roomy)
	if err != nil {
		t.Fatal(err)
	}
	damage := filepath.Join(t.TempDir(), "damaged")
	try := func(b []byte) (End, error) {
		if err := os.WriteFile(damage, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, end, err := Check(t.Context(), damage, roomy)
		return end, err
	}
	for n := 0; n < len(b); n += 2 {
		if n < 10 && n > 2 { // time and system of the header of gzip, which say nothing
			continue
		}
		if _, err := try(b[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are taken for all", n, len(b))
		}
		changed := bytes.Clone(b)
		changed[n] ^= 0x11
		if end, err := try(changed); err == nil && end != whole {
			t.Errorf("byte %d was changed without notice", n)
		}
	}
	if _, err := try(append(bytes.Clone(b), "more"...)); err == nil {
		t.Error("what follows was not noticed")
	}
}

// refused checks that neither a check nor an extraction accepts an archive, and that
// nothing outside the target was written.
func refused(t *testing.T, file string, limit int64, says string) {
	t.Helper()
	if _, _, err := Check(t.Context(), file, limit); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("the check says %v, not %q", err, says)
	}
	parent := t.TempDir()
	to := filepath.Join(parent, "to")
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Extract(t.Context(), file, to, limit); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("the extraction says %v, not %q", err, says)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 1 {
		t.Errorf("beside the target: %v, %v", left, err)
	}
}
