package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"weir/cmd/weir/config"
)

// minSubordinate is how many subordinate IDs are worth a user namespace.
const minSubordinate = 1000

// idMap maps IDs of a user namespace: those from inner on to those from outer on.
type idMap struct{ inner, outer, count int64 }

// readIDMap reads a file such as /proc/self/uid_map.
func readIDMap(file string) (list []idMap, err error) {
	b, err := os.ReadFile(file)
	for line := range strings.Lines(string(b)) {
		var m idMap
		if _, err := fmt.Sscan(line, &m.inner, &m.outer, &m.count); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, err
}

// lastMapped returns the last of the IDs from first on that a map contains without a gap;
// less than first: it does not contain first.
func lastMapped(maps []idMap, first int64) int64 {
	for _, m := range maps {
		if m.inner <= first && first < m.inner+m.count {
			return m.inner + m.count - 1
		}
	}
	return first - 1
}

// namespaceMap returns the map of a user namespace in which this user is root, and
// workspaces have subordinate IDs.
func namespaceMap(cfg config.Config, own int64, file string, names ...string) ([]idMap, error) {
	first, count, err := subordinateIDs(file, names...)
	if err != nil {
		return nil, err
	}
	if count < minSubordinate {
		return nil, fmt.Errorf("%s has %d IDs for user %s, fewer than %d", file, count, names[0], minSubordinate)
	}
	return []idMap{{0, own, 1}, {int64(cfg.SandboxUID), first, 1},
		{cfg.IDRange.First, first + 1, min(count-1, cfg.IDRange.Last-cfg.IDRange.First+1)}}, nil
}

// subordinateIDs returns the largest range of IDs that a file such as /etc/subuid has for
// one of the names of a user.
func subordinateIDs(file string, names ...string) (first, count int64, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		columns := strings.Split(lines.Text(), ":")
		if len(columns) != 3 || !slices.Contains(names, columns[0]) {
			continue
		}
		from, err1 := strconv.ParseInt(columns[1], 10, 64)
		n, err2 := strconv.ParseInt(columns[2], 10, 64)
		if errors.Join(err1, err2) == nil && n > count {
			first, count = from, n
		}
	}
	return first, count, lines.Err()
}

// enterUserNamespace restarts this program as root of a user namespace with the
// subordinate IDs of its user, so that it can give them to members. The namespace stays
// when the program ends: the next server must reach the workspaces in it. It returns only
// if that is not possible.
func enterUserNamespace(cfg config.Config) error {
	u, err := user.Current()
	if err != nil {
		return err
	}
	uids, err1 := namespaceMap(cfg, int64(os.Getuid()), subordinateUsers, u.Username, u.Uid)
	gids, err2 := namespaceMap(cfg, int64(os.Getgid()), "/etc/subgid", u.Username, u.Uid)
	nsenter, err3 := exec.LookPath("nsenter")
	program, err4 := os.Executable()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	pid, err := sharedNamespace(uids, gids)
	if err != nil {
		return err
	}
	// Root has another data directory by default.
	env := append(os.Environ(), "WEIR_DATA_DIR="+cfg.DataDir)
	args := append([]string{"nsenter", "--user", "--target", pid, "--preserve-credentials", "--", program}, os.Args[1:]...)
	return syscall.Exec(nsenter, args, env)
}

// subordinateUsers has the subordinate IDs of users.
const subordinateUsers = "/etc/subuid"

// sharedNamespace returns a process in the user namespace with these maps. If there is none
// yet, of several commands that start at once only one creates it.
func sharedNamespace(uids, gids []idMap) (pid string, err error) {
	lock, err := os.Open(subordinateUsers)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	for range 100 { // not for ever: every local user can lock the file
		if err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != syscall.EWOULDBLOCK {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil && err != syscall.EWOULDBLOCK {
		return "", fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	if pid = namespaceOf(uids, gids); pid != "" {
		return pid, nil
	}
	return createNamespace(uids, gids)
}

// namespaceOf returns the oldest process in a user namespace with these maps, or "". If there
// are several of these, each command gets into the same one.
func namespaceOf(uids, gids []idMap) (oldest string) {
	files, _ := filepath.Glob("/proc/[0-9]*/uid_map") // the pattern is valid
	first := int64(math.MaxInt64)
	for _, file := range files {
		dir := filepath.Dir(file)
		u, err1 := readIDMap(file)
		g, err2 := readIDMap(filepath.Join(dir, "gid_map"))
		started, err3 := startOf(dir)
		if errors.Join(err1, err2, err3) == nil && slices.Equal(u, uids) && slices.Equal(g, gids) && started < first {
			oldest, first = filepath.Base(dir), started
		}
	}
	return oldest
}

// startOf returns when the process of a directory in /proc has started, in ticks since the boot.
func startOf(dir string) (int64, error) {
	b, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may contain spaces; fields are counted after it.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("%s: unreadable stat", dir)
	}
	return strconv.ParseInt(fields[19], 10, 64)
}

// createNamespace starts a process that does nothing in a new user namespace.
func createNamespace(uids, gids []idMap) (pid string, err error) {
	cmd := exec.Command("sleep", "infinity")
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWUSER}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("a user namespace: %w", err)
	}
	pid = strconv.Itoa(cmd.Process.Pid)
	for program, maps := range map[string][]idMap{"newuidmap": uids, "newgidmap": gids} {
		args := []string{pid}
		for _, m := range maps {
			args = append(args, strconv.FormatInt(m.inner, 10), strconv.FormatInt(m.outer, 10), strconv.FormatInt(m.count, 10))
		}
		if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
			return "", errors.Join(fmt.Errorf("%s: %w %s", program, err, strings.TrimSpace(string(out))), cmd.Process.Kill(), ignoreExit(cmd.Wait()))
		}
	}
	return pid, cmd.Process.Release()
}

// ignoreExit ignores how a killed process has ended.
func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}
