package storetest

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestEachCallGetsAnEmptyDatabase(t *testing.T) {
	first, second := connect(t, Postgres(t)), connect(t, Postgres(t))
	for _, db := range []*sql.DB{first, second} {
		if _, err := db.Exec("CREATE TABLE t (n int)"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := first.Exec("INSERT INTO t VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := second.QueryRow("SELECT count(*) FROM t").Scan(&n); err != nil || n != 0 {
		t.Errorf("the second database has %d rows, %v", n, err)
	}
}

func TestManyAtOnce(t *testing.T) {
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			if err := connect(t, Postgres(t)).Ping(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDatabaseGoesWithItsTest(t *testing.T) {
	var dsn string
	t.Run("inner", func(t *testing.T) {
		dsn = Postgres(t)
		if err := connect(t, dsn).Ping(); err != nil {
			t.Fatal(err)
		}
	})
	if err := connect(t, dsn).Ping(); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("the database is still there: %v", err)
	}
}

func TestStopLeavesNothing(t *testing.T) {
	s, err := start()
	if err != nil {
		t.Fatal(err)
	}
	pid := serverPID(t, s.dir)
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	waitGone(t, s.dir, pid)
}

// The server ends with a killed test process.
func TestKilledProcessLeavesNothing(t *testing.T) {
	if os.Getenv("MODELSTEST_VICTIM") != "" {
		s, err := start()
		fmt.Println("directory", s.dir, err)
		select {}
	}
	victim := exec.Command(os.Args[0], "-test.run", "^TestKilledProcessLeavesNothing$")
	victim.Env = append(os.Environ(), "MODELSTEST_VICTIM=1")
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	var dir string
	if _, err := fmt.Sscanf(line, "directory %s <nil>", &dir); err != nil {
		t.Fatalf("the victim says %q: %v", line, err)
	}
	pid := serverPID(t, dir)
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // says that it was killed
	waitGone(t, dir, pid)
}

func TestFailedStartSaysWhy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := &server{dir: dir, supervisor: exec.Command("/bin/sh", "-c", supervisorScript, "weir-postgres", "/does/not/exist", dir)}
	if err := s.launch(); err == nil || !strings.Contains(err.Error(), "/does/not/exist/initdb") {
		t.Errorf("got %v", err)
	}
	_ = s.stop() // says that the supervisor failed
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

func TestAbsentPostgresFails(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	bin, err := findBin()
	if err == nil && !strings.HasPrefix(bin, "/usr/lib/postgresql/") || err != nil && err != errAbsent {
		t.Errorf("got %s, %v", bin, err)
	}
}

func connect(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func serverPID(t *testing.T, dir string) (pid int) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(raw), &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// waitGone polls until the server and its directory are gone.
func waitGone(t *testing.T, dir string, pid int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for {
		_, errDir := os.Stat(dir)
		// A zombie has ended; in a container it may wait for its parent.
		stat, errPID := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		ended := errors.Is(errPID, fs.ErrNotExist) || strings.Contains(string(stat), ") Z ")
		if errors.Is(errDir, fs.ErrNotExist) && ended {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("still there: directory %v, process %s", errDir, stat)
		}
	}
}
