package image

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// JupyterName is the Jupyter image of the test cluster.
const JupyterName = "weir.local/jupyter:debian"

// JupyterUser is the user and group id that owns /home/jovyan in the image.
const JupyterUser = 1000

// recipe must be changed when the same packages give another image.
const recipe = "2"

var (
	// roots are Jupyter, what computes the parts of deployments, and the programs that users expect
	// in its shell.
	roots = []string{"jupyter-notebook", "python3-ipykernel", "python3-numpy",
		"bash", "coreutils", "dash", "debianutils", "grep", "sed", "findutils",
		"libc-bin", "base-files", "ca-certificates", "procps", "tzdata"}
	// without are packages for installing and debugging only.
	without = []string{"dpkg", "debconf", "perl", "perl-base", "gdb", "install-info", "init-system-helpers", "adduser", "passwd"}
)

// Jupyter returns an image with this machine's Jupyter, and builds it in the
// directory cache if needed. It runs as [JupyterUser] with a read-only root;
// /home/jovyan and /tmp must be writable volumes. It fails without the Debian
// package jupyter-notebook.
func Jupyter(ctx context.Context, cache string) (Image, error) {
	packages, err := installed(ctx)
	if err != nil {
		return Image{}, err
	}
	names, err := closure(packages, roots, without)
	if err != nil {
		return Image{}, err
	}
	key := sha256.New()
	fmt.Fprintln(key, recipe, notCopied)
	for i, name := range names {
		p := packages[name]
		fmt.Fprintln(key, p.name, p.version)
		names[i] = p.name
	}
	im := Image{JupyterName, filepath.Join(cache, "jupyter-"+hex.EncodeToString(key.Sum(nil))[:16]+".tar")}
	if _, err := os.Stat(im.Path); err == nil {
		return im, nil
	}
	paths, err := filesOf(ctx, names)
	if err != nil {
		return Image{}, err
	}
	if err := im.write(jupyterSettings, func(w *tar.Writer) error { return jupyterLayer(w, paths) }); err != nil {
		return Image{}, err
	}
	return im, removeOthers(im.Path)
}

// removeOthers removes images of older packages.
func removeOthers(current string) error {
	found, err := filepath.Glob(filepath.Join(filepath.Dir(current), "jupyter-*.tar"))
	for _, path := range found {
		if path != current {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

var jupyterSettings = settings{
	User:       fmt.Sprintf("%d:%d", JupyterUser, JupyterUser),
	Env:        []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/home/jovyan", "SHELL=/bin/bash"},
	Cmd:        []string{"jupyter-notebook", "--ip=0.0.0.0", "--port=8888", "--no-browser"},
	WorkingDir: "/home/jovyan",
}

func jupyterLayer(w *tar.Writer, paths []string) error {
	files := tree{}
	blas, err := filepath.Glob("/usr/lib/*/libblas.so.3")
	lapack, failed := filepath.Glob("/usr/lib/*/liblapack.so.3")
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	// Links into /usr, and those that select one of several packages, belong to no package.
	outside := []string{"/bin", "/sbin", "/lib", "/lib64", "/etc/ssl/certs/ca-certificates.crt"}
	for _, path := range slices.Concat(paths, blas, lapack, outside) {
		if err := files.add(path); err != nil {
			return err
		}
	}
	// The accounts of this machine are not copied.
	for _, own := range []string{"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/home", "/root", "/tmp", "/var/tmp"} {
		delete(files, own)
	}
	if err := files.write(w); err != nil {
		return err
	}
	a := archive{w}
	for name, content := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/bash\njovyan:x:1000:1000:jovyan:/home/jovyan:/bin/bash\n" +
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"etc/group":         "root:x:0:\njovyan:x:1000:\nusers:x:100:\nnogroup:x:65534:\n",
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
	} {
		if err := a.document(name, []byte(content)); err != nil {
			return err
		}
	}
	return directories(w)
}

// directories adds directories that a container mounts or writes to.
func directories(w *tar.Writer) error {
	for _, d := range []tar.Header{
		{Name: "home/", Mode: 0o755}, {Name: "root/", Mode: 0o700},
		{Name: "home/jovyan/", Mode: 0o755, Uid: JupyterUser, Gid: JupyterUser},
		{Name: "tmp/", Mode: 0o1777}, {Name: "var/tmp/", Mode: 0o1777},
		{Name: "proc/", Mode: 0o555}, {Name: "sys/", Mode: 0o555}, {Name: "dev/", Mode: 0o755},
	} {
		d.Typeflag = tar.TypeDir
		if err := w.WriteHeader(&d); err != nil {
			return err
		}
	}
	return nil
}
