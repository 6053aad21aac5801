package local

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"weir/models"
)

// What a sandbox may keep in the directories that it shares with the server, which no storage quota
// covers: they are for sockets and for what a run reports.
const (
	sharedFiles = 1000
	sharedBytes = 64 << 20
	sharedDepth = 8
)

// checkShared kills a sandbox that keeps more. The reason is that of its end.
func (r *Runtime) checkShared(in *instance) {
	if !in.overfull() {
		return
	}
	r.config.Logger.Warn("killed: too much in the directories for sockets", "workspace", in.Workspace, "generation", in.Generation)
	r.mu.Lock()
	r.reasons[in.key()] = models.Say("It was killed: more than %s or %d files, or closed or deep directories, were in %s and %s, which are for sockets.",
		models.FormatMiB(sharedBytes>>20), sharedFiles, innerRun, innerKernels)
	r.mu.Unlock()
	if status := in.sandboxStatus(); status.Child != 0 {
		in.killInner(status) // the exit code is written
	} else {
		in.kill()
	}
}

// reasonOf returns why this process has killed an instance; empty if it has not.
func (r *Runtime) reasonOf(in *instance) models.Text {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reasons[in.key()]
}

// overfull reports whether a sandbox keeps more than it may. It looks at no more than that, and
// no link leads it elsewhere.
func (in *instance) overfull() bool {
	total := contents{}
	for _, dir := range []string{in.shared(), in.kernelsDir()} {
		top, err := os.OpenRoot(dir)
		if err != nil {
			total.hidden = total.hidden || errors.Is(err, unix.EACCES)
			continue
		}
		total.add(top, ".", 0)
		top.Close()
	}
	return total.overfull()
}

// contents are what is in some directories.
type contents struct {
	files  int
	bytes  int64
	hidden bool // something cannot be seen
}

func (c *contents) overfull() bool { return c.files > sharedFiles || c.bytes > sharedBytes || c.hidden }

func (c *contents) add(top *os.Root, dir string, depth int) {
	entries, err := readSome(top, dir, sharedFiles+1)
	c.hidden = c.hidden || errors.Is(err, unix.EACCES) || depth > sharedDepth
	c.files += len(entries)
	for _, e := range entries {
		if c.overfull() {
			return
		}
		path := filepath.Join(dir, e.Name())
		info, err := top.Lstat(path)
		if err == nil {
			c.bytes += info.Sys().(*syscall.Stat_t).Blocks * blockSize
		}
		c.hidden = c.hidden || errors.Is(err, unix.EACCES)
		if e.IsDir() {
			c.add(top, path, depth+1)
		}
	}
}
