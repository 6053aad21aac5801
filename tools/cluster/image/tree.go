package image

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tree is the set of files of this machine to copy into a layer.
type tree map[string]fs.FileInfo

func sorted[V any](set map[string]V) []string { return slices.Sorted(maps.Keys(set)) }

// notCopied are documentation and files for desktops.
var notCopied = []string{
	"/usr/share/doc/", "/usr/share/man/", "/usr/share/info/", "/usr/share/locale/", "/usr/share/lintian/",
	"/usr/share/bug/", "/usr/share/icons/", "/usr/share/applications/", "/usr/share/doc-base/", "/var/lib/dpkg/",
	"/etc/init.d/", "/etc/cron.daily/", "/lib/systemd/", "/usr/lib/systemd/",
}

// add adds path, and the target of a link. Missing and unwanted files are
// skipped.
func (t tree) add(path string) error {
	for range 16 { // links in a row
		real, err := filepath.EvalSymlinks(filepath.Dir(path))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		path = filepath.Join(real, filepath.Base(path)) // /bin may be /usr/bin
		info, err := os.Lstat(path)
		if err != nil || t[path] != nil || unwanted(path) {
			return ignoreMissing(err)
		}
		if info.IsDir() || info.Mode().IsRegular() {
			t[path] = info
			return t.addCompiled(path)
		}
		if info.Mode().Type() != fs.ModeSymlink {
			return nil
		}
		t[path] = info
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(real, target)
		}
		path = target
	}
	return nil
}

// addCompiled adds the files that Python compiled of a module at its
// installation: the root file system of a container is read-only.
func (t tree) addCompiled(path string) error {
	module, ok := strings.CutSuffix(filepath.Base(path), ".py")
	if !ok {
		return nil
	}
	compiled, err := filepath.Glob(filepath.Join(filepath.Dir(path), "__pycache__", module+".cpython-*.pyc"))
	for _, c := range compiled {
		info, err := os.Lstat(c)
		if err != nil {
			return ignoreMissing(err)
		}
		t[c] = info
	}
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func unwanted(path string) bool {
	return slices.ContainsFunc(notCopied, func(dir string) bool { return strings.HasPrefix(path, dir) })
}

// write copies the tree into a layer, owned by root. It preserves times,
// because Python compares them with its compiled files.
func (t tree) write(w *tar.Writer) error {
	for _, path := range sorted(t) {
		if err := writeFile(w, path, t[path]); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(w *tar.Writer, path string, info fs.FileInfo) error {
	link := ""
	if info.Mode().Type() == fs.ModeSymlink {
		var err error
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	*header = tar.Header{Typeflag: header.Typeflag, Name: strings.TrimPrefix(path, "/"), Linkname: link,
		Size: header.Size, Mode: header.Mode & 0o1777, ModTime: header.ModTime} // no setuid programs
	if err := w.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
