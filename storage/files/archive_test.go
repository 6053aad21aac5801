package files

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/models/store/storetest"
)

func TestArchives(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		for _, dir := range []string{"dir", "dir/sub", "dir/empty", "dir/denied"} {
			if _, err := w.MakeDirectory(ctx, w.acting, w.project, w.at(dir)); err != nil {
				t.Fatal(err)
			}
		}
		w.write(t, w.at("dir/a\xff"), "one")
		w.write(t, w.at("dir/sub/b"), strings.Repeat("b", 100_000))
		w.write(t, w.at("dir/denied/c"), "secret")
		if err := os.Symlink("/etc/passwd", w.disk(w.at("dir/link"))); err != nil {
			t.Fatal(err)
		}
		w.rule(t, w.at("dir/denied"), models.AccessWrite, models.DownloadDeny)
		for _, format := range []Format{Zip, Tar} {
			a, err := w.OpenArchive(ctx, w.acting, w.project, w.at("dir"), nil, format, true)
			if err != nil {
				t.Fatal(err)
			}
			var packed bytes.Buffer
			if err := a.Write(ctx, &packed); err != nil {
				t.Fatal(err)
			}
			a.Close()
			to := w.at("from " + string(format))
			if _, err := w.Extract(ctx, w.acting, w.project, to, format, &packed); err != nil {
				t.Fatal(err)
			}
			if w.read(t, to+"/a\xff") != "one" || len(w.read(t, to+"/sub/b")) != 100_000 || w.names(t, to) != "empty sub a\uFFFD" {
				t.Errorf("%s: %s", format, w.names(t, to))
			}
		}
		if err := os.Remove(w.disk(w.at("dir/link"))); err != nil {
			t.Fatal(err)
		}
		w.settled(t, 3*100_003+6)
		_, err := w.OpenArchive(ctx, w.acting, w.project, w.at("dir/denied"), nil, Zip, true)
		wants(t, "denied", models.KindForbidden, err)
		_, err = w.OpenArchive(ctx, w.acting, w.project, w.at("dir/sub/b"), nil, Zip, true)
		wants(t, "a file", models.KindConflict, err)
	})
}

// The writer of a zip archive keeps its entries in memory: one with too many, or too long names, is refused
// before it begins, and ends when they become too many. A tar archive is not.
func TestZipsAreBounded(t *testing.T) {
	w := newWorld(t, storetest.Open(t, "sqlite"), t.TempDir())
	ctx := t.Context()
	w.Settings.Archive.Entries = 4
	open := func(format Format) (*Archive, error) {
		return w.OpenArchive(ctx, w.acting, w.project, w.at("dir"), nil, format, true)
	}
	add := func(name string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(w.disk(w.at(name))), 0o755), os.WriteFile(w.disk(w.at(name)), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	add("dir/sub/a")
	add("dir/sub/b")
	add("dir/sub/c")
	most, err := open(Zip)
	if err != nil {
		t.Fatal(err)
	}
	defer most.Close()
	if err := most.Write(ctx, io.Discard); err != nil {
		t.Error(err)
	}
	add("dir/one more")
	wants(t, "one more while it is written", models.KindConflict, most.Write(ctx, io.Discard))
	downloads := strings.Count(w.actions(t), "download")
	_, err = open(Zip)
	wants(t, "more", models.KindConflict, err)
	if !strings.Contains(fmt.Sprint(err), "at most 4 entries") || !strings.Contains(fmt.Sprint(err), "TAR") || strings.Count(w.actions(t), "download") != downloads {
		t.Errorf("%v; audited: %s", err, w.actions(t))
	}
	all, err := open(Tar)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	var packed bytes.Buffer
	if err := all.Write(ctx, &packed); err != nil || !strings.Contains(packed.String(), "one more") {
		t.Errorf("as tar: %v", err)
	}
	if err := os.RemoveAll(w.disk(w.at("dir"))); err != nil {
		t.Fatal(err)
	}
	add("dir/" + strings.Repeat(strings.Repeat("x", 250)+"/", 3) + "a")
	_, err = open(Zip)
	wants(t, "four with long names", models.KindConflict, err)
}

// An archive ends when something in it may no longer be downloaded.
func TestArchivesEndWithTheirRight(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		for _, dir := range []string{"dir", "dir/sub"} {
			if _, err := w.MakeDirectory(ctx, w.acting, w.project, w.at(dir)); err != nil {
				t.Fatal(err)
			}
		}
		w.write(t, w.at("dir/sub/a"), "secret")
		a, err := w.OpenArchive(ctx, w.acting, w.project, w.at("dir"), nil, Tar, true)
		if err != nil || !a.Start(ctx, func() {}) {
			t.Fatal(err)
		}
		defer a.Close()
		w.rule(t, w.at("other"), models.AccessRead, models.DownloadDeny)
		if a.Cut() {
			t.Error("cut for a rule about something else")
		}
		w.rule(t, w.at("dir/sub"), models.AccessRead, models.DownloadDeny)
		var packed bytes.Buffer
		if err := a.Write(ctx, &packed); err == nil || strings.Contains(packed.String(), "secret") {
			t.Errorf("%v, %q", err, packed.String())
		}
	})
}

// hostileArchives are refused, each with nothing left behind.
func hostileArchives(t testing.TB) map[string]struct {
	format Format
	bytes  []byte
} {
	t.Helper()
	type archive = struct {
		format Format
		bytes  []byte
	}
	list := map[string]archive{}
	for i, name := range []string{"../escape", "/absolute", "a/../../escape", "a//b", "./../escape", "a/./b", "a\x00b", strings.Repeat("x", 256), "..", "a/.."} {
		if !strings.Contains(name, "\x00") { // no tar has such a name
			list[fmt.Sprint("tar path ", i)] = archive{Tar, tarOf(t, &tar.Header{Name: name, Typeflag: tar.TypeReg})}
		}
		list[fmt.Sprint("zip path ", i)] = archive{Zip, zipOf(t, &zip.FileHeader{Name: name})}
	}
	for kind, flag := range map[string]byte{"symlink": tar.TypeSymlink, "hard link": tar.TypeLink, "fifo": tar.TypeFifo, "device": tar.TypeChar} {
		list["tar "+kind] = archive{Tar, tarOf(t, &tar.Header{Name: "a", Linkname: "/etc/passwd", Typeflag: flag})}
	}
	link := &zip.FileHeader{Name: "a"}
	link.SetMode(fs.ModeSymlink | 0o777)
	list["zip symlink"] = archive{Zip, zipOf(t, link)}
	list["twice"] = archive{Tar, tarOf(t, &tar.Header{Name: "a", Typeflag: tar.TypeReg}, &tar.Header{Name: "a", Typeflag: tar.TypeReg})}
	list["a file as a directory"] = archive{Tar, tarOf(t, &tar.Header{Name: "a", Typeflag: tar.TypeReg}, &tar.Header{Name: "a/b", Typeflag: tar.TypeReg})}
	good := tarOf(t, &tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 5000})
	list["truncated tar"] = archive{Tar, good[:3000]}
	list["tar without its end"] = archive{Tar, good[:512+5120]}
	damaged := gzipped(t, good)
	damaged[len(damaged)-8] ^= 1 // its checksum
	list["damaged gzip"] = archive{TarGz, damaged}
	list["truncated gzip"] = archive{TarGz, gzipped(t, good)[:40]}
	list["truncated zip"] = archive{Zip, zipOf(t, &zip.FileHeader{Name: "a"})[:50]}
	list["no archive"] = archive{Zip, []byte("hello")}
	list["no gzip"] = archive{TarGz, []byte("hello")}
	list["empty zip upload"] = archive{Zip, nil}
	list["ratio of gzip"] = archive{TarGz, gzipped(t, tarOf(t, &tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 40 << 20}))}
	bomb := &zip.FileHeader{Name: "a", Method: zip.Deflate}
	list["ratio of zip"] = archive{Zip, zipWith(t, bomb, make([]byte, 40<<20))}
	list["overlapping zip"] = archive{Zip, overlapping(t)}
	list["HTML and no UTF-8, outside"] = archive{Zip, zipOf(t, &zip.FileHeader{Name: "<script>\xff\n/../../escape"})}
	list["too many in tar"] = archive{Tar, manyInTar(t)}
	list["too many in zip"] = archive{Zip, manyInZip(t)}
	return list
}

func tarOf(t testing.TB, headers ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		h.Format = tar.FormatGNU
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(t testing.TB, header *zip.FileHeader) []byte {
	t.Helper()
	return zipWith(t, header, []byte("content"))
}

func zipWith(t testing.TB, header *zip.FileHeader, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateHeader(header)
	if err == nil && !strings.HasSuffix(header.Name, "/") {
		_, err = w.Write(content)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// overlapping is an archive of 999 MiB in 50 KiB: each of its entries is the same bytes.
func overlapping(t testing.TB) []byte {
	t.Helper()
	one := zipWith(t, &zip.FileHeader{Name: "000", Method: zip.Deflate}, make([]byte, 1<<20))
	const end = 22 // bytes of the record at the end
	directory := int(binary.LittleEndian.Uint32(one[len(one)-6:]))
	entry, last := one[directory:len(one)-end], bytes.Clone(one[len(one)-end:])
	all := bytes.Clone(one[:directory])
	const entries = 999
	for i := range entries {
		all = append(all, bytes.Replace(entry, []byte("000"), fmt.Appendf(nil, "%03d", i), 1)...)
	}
	binary.LittleEndian.PutUint16(last[8:], entries)
	binary.LittleEndian.PutUint16(last[10:], entries)
	binary.LittleEndian.PutUint32(last[12:], uint32(len(all)-directory))
	all = append(all, last...)
	if ratio := entries << 20 / len(all); ratio < 10_000 {
		t.Fatalf("the ratio is %d", ratio)
	}
	if z, err := zip.NewReader(bytes.NewReader(all), int64(len(all))); err != nil || len(z.File) != entries {
		t.Fatalf("%v, %v", z, err)
	}
	return all
}

const manyEntries = 1001 // the limit of the test is 1000

func manyInTar(t testing.TB) []byte {
	var headers []*tar.Header
	for i := range manyEntries {
		headers = append(headers, &tar.Header{Name: fmt.Sprint(i), Typeflag: tar.TypeReg})
	}
	return tarOf(t, headers...)
}

func manyInZip(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := range 1_000_000 {
		if _, err := z.CreateHeader(&zip.FileHeader{Name: fmt.Sprint(i), Method: zip.Store}); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestHostileArchives(t *testing.T) {
	w := newWorld(t, storetest.Open(t, "sqlite"), t.TempDir())
	w.Archive.Entries = 1000
	canary := filepath.Join(filepath.Dir(w.path), "escape")
	for name, a := range hostileArchives(t) {
		_, err := w.Extract(t.Context(), w.acting, w.project, w.at("to"), a.format, bytes.NewReader(a.bytes))
		if kind := models.KindOf(err); err == nil || kind != models.KindInvalid && kind != models.KindConflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("an archive led outside")
	}
	if names := w.names(t, w.at("")); names != "" {
		t.Errorf("left: %s", names)
	}
	w.settled(t, 0)
}

// What cannot be read is not left out of a copy or an archive as if it were not there; a search says nothing of it.
func TestUnreadableIsNotLeftOut(t *testing.T) {
	w := newWorld(t, storetest.Open(t, "sqlite"), t.TempDir())
	for _, name := range []string{"dir", "dir/sub"} {
		if _, err := w.MakeDirectory(t.Context(), w.acting, w.project, w.at(name)); err != nil {
			t.Fatal(err)
		}
	}
	w.write(t, w.at("dir/a"), "first")
	w.write(t, w.at("dir/sub/b"), "second")
	if err := os.Chmod(w.disk(w.at("dir/sub")), 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // the thread loses what root may do to files
		err := filepath.WalkDir(w.path, func(path string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, 65534, 65534))
		})
		if err != nil {
			t.Fatal(err)
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := unix.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Setfsuid(0) }()
	}
	_, err := w.Copy(t.Context(), w.acting, w.project, w.at("dir"), w.at("copy"))
	wants(t, "a copy", models.KindConflict, err)
	a, err := w.OpenArchive(t.Context(), w.acting, w.project, w.at("dir"), nil, Tar, true)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	wants(t, "an archive", models.KindConflict, a.Write(t.Context(), io.Discard))
	found, err := w.Search(t.Context(), w.acting, w.project, w.at("dir"), "")
	if err != nil || len(found.Entries) != 2 {
		t.Errorf("a search finds %+v, %v", found.Entries, err)
	}
}

// A million entries cost the memory and the time of those that are allowed.
func TestAMillionEntriesAreBounded(t *testing.T) {
	w := newWorld(t, storetest.Open(t, "sqlite"), t.TempDir())
	archive := bytes.NewReader(manyInZip(t))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := w.Extract(t.Context(), w.acting, w.project, w.at("to"), Zip, archive)
	runtime.ReadMemStats(&after)
	wants(t, "zip", models.KindInvalid, err)
	if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 200 {
		t.Errorf("%d MiB were allocated", allocated)
	}
	w.Archive.Entries = 1000
	read, write := io.Pipe()
	written, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		packed := tar.NewWriter(write)
		for err := error(nil); err == nil && written < 1_000_000; written++ {
			err = packed.WriteHeader(&tar.Header{Name: fmt.Sprint(written), Typeflag: tar.TypeReg})
		}
		_ = write.CloseWithError(packed.Close())
	}()
	_, err = w.Extract(t.Context(), w.acting, w.project, w.at("to"), Tar, read)
	_ = read.Close()
	wants(t, "tar", models.KindInvalid, err)
	<-done
	if written > 2*w.Archive.Entries {
		t.Errorf("%d entries were read", written)
	}
	w.settled(t, 0)
}

// FuzzExtract extracts anything: it fits in the directory or is refused, and nothing is
// left over.
func FuzzExtract(f *testing.F) {
	w := newWorld(f, storetest.Open(f, "sqlite"), f.TempDir())
	w.Archive = ArchiveLimits{Entries: 100, Bytes: 1 << 20, Ratio: 200}
	for name, a := range hostileArchives(f) {
		if len(a.bytes) < 1<<16 {
			f.Add(string(a.format), a.bytes)
		} else {
			f.Logf("%s is too large for a seed", name)
		}
	}
	f.Add("zip", zipOf(f, &zip.FileHeader{Name: "good"}))
	f.Fuzz(func(t *testing.T, format string, content []byte) {
		if format != "zip" && format != "tar" && format != "tar.gz" {
			return
		}
		_, err := w.Extract(t.Context(), w.acting, w.project, w.at("to"), Format(format), bytes.NewReader(content))
		if models.KindOf(err) == models.KindInternal {
			t.Fatal(err)
		}
		if err == nil {
			if err := os.RemoveAll(w.disk(w.at("to"))); err != nil {
				t.Fatal(err)
			}
		}
		for _, dir := range []string{w.path + "/notebook/" + fmt.Sprint(w.project) + "/project_model", w.meta("tmp")} {
			if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
				t.Fatalf("%s: %v, %v", dir, left, err)
			}
		}
		if outside, err := os.ReadDir(w.path); err != nil || len(outside) != 5 {
			t.Fatalf("%v, %v", outside, err)
		}
	})
}

// An archive of some entries has these, and no others beside them.
func TestArchivesOfSome(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		for _, dir := range []string{"dir", "dir/sub", "dir/sub/deep", "other"} {
			if _, err := w.MakeDirectory(ctx, w.acting, w.project, w.at(dir)); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"dir/a", "dir/b", "dir/sub/c", "dir/sub/deep/d", "dir/sub/e", "other/f"} {
			w.write(t, w.at(name), name)
		}
		for i, c := range []struct {
			items []string
			has   string
		}{
			{[]string{"dir/a", "dir/sub"}, "a sub/ sub/c sub/deep/ sub/deep/d sub/e"},
			{[]string{"dir/a", "dir/sub/deep"}, "a sub/deep/ sub/deep/d"},
			{[]string{"dir/sub/c", "other"}, "dir/sub/c other/ other/f"},
			{[]string{"dir/sub/c"}, "c"},
			{[]string{"dir/sub", "dir/sub/c"}, "sub/ sub/c sub/deep/ sub/deep/d sub/e"},
		} {
			var items []models.FilePath
			for _, item := range c.items {
				items = append(items, w.at(item))
			}
			a, err := w.OpenArchive(ctx, w.acting, w.project, "/", items, Zip, true)
			if err != nil {
				t.Fatal(err)
			}
			var packed bytes.Buffer
			if err := a.Write(ctx, &packed); err != nil {
				t.Fatal(err)
			}
			a.Close()
			z, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, f := range z.File {
				names = append(names, f.Name)
			}
			if slices.Sort(names); strings.Join(names, " ") != c.has {
				t.Errorf("%d: %q, want %q", i, names, c.has)
			}
		}
		_, err := w.OpenArchive(ctx, w.acting, w.project, "/", []models.FilePath{w.at("dir/a"), w.at("missing")}, Zip, true)
		wants(t, "missing", models.KindNotFound, err)
		_, err = w.OpenArchive(ctx, w.acting, w.project, "/", make([]models.FilePath, maxItems+1), Zip, true)
		wants(t, "too many", models.KindInvalid, err)
		w.rule(t, w.at("dir/b"), models.AccessWrite, models.DownloadDeny)
		_, err = w.OpenArchive(ctx, w.acting, w.project, "/", []models.FilePath{w.at("dir/a"), w.at("dir/b")}, Zip, true)
		wants(t, "denied", models.KindForbidden, err)
		w.rule(t, w.at("dir"), models.AccessWrite, models.DownloadDeny)
		w.rule(t, w.at("dir/a"), models.AccessWrite, models.DownloadAllow)
		a, err := w.OpenArchive(ctx, w.acting, w.project, "/", []models.FilePath{w.at("dir/a")}, Zip, true)
		if err != nil || !a.Start(ctx, func() {}) {
			t.Fatalf("allowed in a directory where others are not: %v", err)
		}
		defer a.Close()
		if w.rule(t, w.at("dir/a"), models.AccessWrite, models.DownloadDeny); !a.Cut() {
			t.Error("it goes on after its right has ended")
		}
	})
}
