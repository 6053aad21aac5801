package storetest

import (
	"bufio"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/sys/unix"
)

var errAbsent = errors.New("PostgreSQL is not installed: run make test, which installs it")

// Postgres returns the URL of a fresh, empty database for the test. The server
// is started at the first call. Without PostgreSQL the test fails: skipping
// would hide half of the tests.
func Postgres(t testing.TB) string { return postgresFrom(t, "template1") }

// postgresFrom is Postgres with a copy of the template.
func postgresFrom(t testing.TB, template string) string {
	t.Helper()
	s, err := startOnce()
	if err != nil {
		t.Fatalf("starting PostgreSQL: %v", err)
	}
	name := fmt.Sprintf("weir_%d", s.databases.Add(1))
	if err := s.exec("CREATE DATABASE " + name + " TEMPLATE " + template); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.exec("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Errorf("dropping the test's database: %v", err)
		}
	})
	return s.url(name)
}

// migratedPostgres creates the template with the schema at its first call and
// returns its name.
var migratedPostgres = sync.OnceValues(func() (string, error) {
	const name = "weir_migrated"
	s, err := startOnce()
	if err != nil {
		return "", err
	}
	if err := s.exec("CREATE DATABASE " + name); err != nil {
		return "", err
	}
	return name, migrate(s.url(name), "")
})

// server is a running PostgreSQL. Its supervisor runs as long as lifeline is
// open, which is as long as this process runs.
type server struct {
	dir        string
	supervisor *exec.Cmd
	lifeline   io.WriteCloser
	databases  atomic.Int64
}

var startOnce = sync.OnceValues(start)

//go:embed supervisor.sh
var supervisorScript string

// start creates a cluster in its own directory and serves it on a Unix socket
// there, so that nothing else on the machine can reach it.
//
// The server belongs to a shell that stops it and removes the directory when
// its standard input is closed. So it ends with this process in any case:
// success, panic, test timeout or kill -9. A parent-death signal does not
// work: it follows the thread that started the child, and leaves the directory
// behind.
func start() (*server, error) {
	bin, err := findBin()
	if err != nil {
		return nil, err
	}
	// Its own process group protects it from a terminal's Ctrl-C.
	attr := &syscall.SysProcAttr{Setpgid: true}
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		// PostgreSQL refuses to run as root.
		if uid, gid, err = unprivileged(); err != nil {
			return nil, err
		}
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	dir, err := os.MkdirTemp(fastest(), "weir-pg-")
	if err != nil {
		return nil, err
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		return nil, err
	}
	s := &server{dir: dir, supervisor: exec.Command("/bin/sh", "-c", supervisorScript, "weir-postgres", bin, dir)}
	s.supervisor.Dir = dir
	s.supervisor.SysProcAttr = attr
	return s, s.launch()
}

// fastest returns a directory in memory if it has enough space, otherwise /tmp. Each database is
// hundreds of small files that are soon deleted, and ext4 without a journal looks at all files that
// were deleted in the last minutes before it creates one.
//
// It is not TMPDIR: a socket's path has at most 107 bytes, and the server's user must be able to
// enter it.
func fastest() string {
	const memory, enough = "/dev/shm", 2 << 30
	var fs unix.Statfs_t
	if err := unix.Statfs(memory, &fs); err == nil && fs.Type == unix.TMPFS_MAGIC && fs.Bavail*uint64(fs.Bsize) >= enough {
		return memory
	}
	return "/tmp"
}

func (s *server) launch() error {
	var err error
	if s.lifeline, err = s.supervisor.StdinPipe(); err != nil {
		return err
	}
	said, err := s.supervisor.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.supervisor.Start(); err != nil {
		return err
	}
	out := bufio.NewReader(said)
	if line, _ := out.ReadString('\n'); line != "ready\n" {
		log, _ := io.ReadAll(out)
		return fmt.Errorf("%s%s", line, log)
	}
	return nil
}

// stop ends the server and waits for it. Only tests of this package need it:
// the end of the process has the same effect.
func (s *server) stop() error {
	return errors.Join(s.lifeline.Close(), s.supervisor.Wait())
}

func (s *server) url(database string) string {
	q := url.Values{"host": {s.dir}, "sslmode": {"disable"}}
	return "postgres://postgres@/" + database + "?" + q.Encode()
}

func (s *server) exec(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db, err := sql.Open("pgx", s.url("postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return err
}

// findBin returns the directory of initdb and pg_ctl, which on Debian are not
// in PATH.
func findBin() (string, error) {
	if path, err := exec.LookPath("pg_ctl"); err == nil {
		return filepath.Dir(path), nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_ctl")
	if len(found) == 0 {
		return "", errAbsent
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// unprivileged is the user that PostgreSQL runs as when the tests run as
// root.
func unprivileged() (uid, gid int, err error) {
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return 0, 0, err
	}
	uid, errUID := strconv.Atoi(u.Uid)
	gid, errGID := strconv.Atoi(u.Gid)
	return uid, gid, errors.Join(errUID, errGID)
}
