package local

import (
	"errors"
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
)

// checkShared kills a sandbox that keeps more. The reason is that of its end.
func (r *Runtime) checkShared(in *instance) {
	if !in.overfull() {
		return
	}
	r.config.Logger.Warn("killed: too much in the directories for sockets", "workspace", in.Workspace, "generation", in.Generation)
	r.mu.Lock()
	r.reasons[in.key()] = models.Say("Jupyter was killed: there was more than %s, or more than %d files, in %s and %s, which are for sockets",
		models.FormatMiB(sharedBytes>>20), sharedFiles, innerRun, innerKernels)
	r.mu.Unlock()
	if status := in.sandboxStatus(); status.Child != 0 {
		in.killInner(status) // the exit code is written
	} else {
		in.kill()
	}
}

// overfull reports whether a sandbox keeps more than it may. It looks at no more than that.
func (in *instance) overfull() bool {
	files, bytes := 0, int64(0)
	for dirs := []string{in.shared(), in.kernelsDir()}; len(dirs) > 0; dirs = dirs[1:] {
		entries, err := readSome(dirs[0], sharedFiles+1)
		if errors.Is(err, unix.ENAMETOOLONG) || errors.Is(err, unix.EACCES) { // hidden
			return true
		}
		for _, e := range entries {
			files++
			if info, err := e.Info(); err == nil {
				bytes += info.Sys().(*syscall.Stat_t).Blocks * blockSize
			}
			if e.IsDir() {
				dirs = append(dirs, filepath.Join(dirs[0], e.Name()))
			}
		}
		if files > sharedFiles || bytes > sharedBytes {
			return true
		}
	}
	return false
}
