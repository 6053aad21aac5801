package nfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"weir/storage/rules"
)

const (
	program    = "ganesha.nfsd"
	period     = time.Second // between looks at the directories, and before a restart
	maxBackoff = 30 * time.Second
	stopGrace  = 10 * time.Second
)

// Run exports the shared directories until ctx ends. A project is exported, or no longer,
// within a second after its directory was made or removed; clients of other exports do
// not notice. A server that fails is started again.
func Run(ctx context.Context, c Config, log *slog.Logger) error {
	if err := c.Check(); err != nil {
		return err
	}
	tool, err := exec.LookPath(program)
	if err != nil {
		return fmt.Errorf("%w: install NFS-Ganesha (Debian's packages nfs-ganesha and nfs-ganesha-vfs)", err)
	}
	s := &server{Config: c, tool: tool, log: log}
	if err := os.MkdirAll(filepath.Join(c.Dir, "recovery"), 0o700); err != nil {
		return err
	}
	if _, err := s.write(); err != nil {
		return err
	}
	for backoff := period; ; backoff = min(2*backoff, maxBackoff) {
		began := time.Now()
		err := s.serve(ctx)
		if ctx.Err() != nil {
			return nil
		}
		log.ErrorContext(ctx, "the NFS server has ended; starting it again", "err", err)
		if time.Since(began) > maxBackoff {
			backoff = period
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(backoff):
		}
	}
}

// server runs Ganesha.
type server struct {
	Config
	tool string
	log  *slog.Logger
	text string // the configuration in the file

	highest int64 // project that was logged as not exported
}

func (s *server) file() string { return filepath.Join(s.Dir, "ganesha.conf") }

// serve runs Ganesha until it or ctx ends.
func (s *server) serve(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, s.tool, "-F", "-f", s.file(), "-p", filepath.Join(s.Dir, "ganesha.pid"), "-L", "STDERR")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	cmd.Stderr = &lineLog{log: s.log}
	// Signals of a terminal are for this process. The child also ends with the thread
	// that starts it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return err
	}
	s.log.InfoContext(ctx, "the NFS server has started", "listen", s.Listen.String())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
		}
		changed, err := s.write()
		if err != nil {
			s.log.ErrorContext(ctx, "cannot update the NFS exports", "err", err)
		}
		if changed {
			_ = cmd.Process.Signal(syscall.SIGHUP) // it reads the exports again, or has ended
		}
	}
}

// write writes the configuration for the directories that exist, and reports whether it
// has changed.
func (s *server) write() (changed bool, err error) {
	projects, err := s.findProjects()
	if err != nil {
		return false, err
	}
	exports := slices.DeleteFunc(s.Exports(projects), func(e Export) bool {
		info, err := os.Stat(e.Dir)
		return err != nil || !info.IsDir()
	})
	text := s.Text(exports)
	if text == s.text {
		return false, nil
	}
	if err := os.WriteFile(s.file()+".new", []byte(text), 0o600); err != nil {
		return false, err
	}
	if err := os.Rename(s.file()+".new", s.file()); err != nil {
		return false, err
	}
	s.text = text
	return true, nil
}

// findProjects returns the projects that have a directory, in a fixed order.
func (s *server) findProjects() (list []Project, err error) {
	entries, err := os.ReadDir(filepath.Join(s.Root, rules.Notebook))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		id, err := strconv.ParseInt(e.Name(), 10, 64)
		switch {
		case err != nil || id <= 0 || strconv.FormatInt(id, 10) != e.Name() || !e.IsDir():
		case id > MaxProject:
			if id > s.highest {
				s.log.Error("a project is not exported by NFS: its id is too high", "project", id, "max", MaxProject)
				s.highest = id
			}
		default:
			if info, err := e.Info(); err == nil { // or it was removed
				list = append(list, Project{id, info.Sys().(*syscall.Stat_t).Gid})
			}
		}
	}
	return list, nil
}

// severe matches lines of Ganesha about warnings and errors.
var severe = regexp.MustCompile(` :(WARN|CRIT|MAJ|FATAL) :`)

// lineLog logs what is written to it, line by line.
type lineLog struct {
	log  *slog.Logger
	rest []byte
}

func (l *lineLog) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		level := slog.LevelDebug
		if severe.Match(line) {
			level = slog.LevelWarn
		}
		l.log.Log(context.Background(), level, "NFS-Ganesha", "line", string(line))
		l.rest = rest
	}
}
