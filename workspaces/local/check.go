package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// available finds bubblewrap and runs an empty sandbox, to check that the kernel and
// its policies allow it.
func available(user identity) (bubblewrap, error) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return bubblewrap{}, errors.New("bubblewrap is not installed: install the package bubblewrap (the program bwrap)")
	}
	help, _ := exec.Command(path, "--help").CombinedOutput()
	tool := bubblewrap{path: path, disableUserns: bytes.Contains(help, []byte("--disable-userns"))}
	if !bytes.Contains(help, []byte("--json-status-fd")) || !bytes.Contains(help, []byte("--size")) {
		return tool, errors.New("bubblewrap is too old: version 0.6 or later is needed")
	}
	if !canStage() && !bytes.Contains(help, []byte("--ro-bind-fd")) {
		return tool, errors.New("bubblewrap is too old: without root, a version with the option --bind-fd is needed")
	}
	out, err := runOnce(tool, user, nil, "true")
	if err == nil || errors.Is(err, errTimedOut) {
		return tool, err
	}
	return tool, fmt.Errorf("bubblewrap cannot make a sandbox here: %s%s", firstLine(out, err), usernsHint())
}

// errTimedOut means that a check says nothing: on a busy machine, a program that works
// can take longer.
var errTimedOut = errors.New("the check ran out of time")

// checkTime is how long a check may take.
const checkTime = 10 * time.Second

// runOnce runs a command in an otherwise empty sandbox and returns its output;
// errTimedOut after 10 s. The timeout runs inside, because killing bubblewrap would not
// kill the command.
func runOnce(tool bubblewrap, user identity, prepare func(*sandbox), argv ...string) ([]byte, error) {
	s := newSandbox(tool, user)
	defer s.close()
	s.system(0, 0)
	s.add("--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/tmp", "--setenv", "LANG", "C.UTF-8", "--chdir", "/")
	if prepare != nil {
		prepare(s)
	}
	gate, pen, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer gate.Close()
	defer pen.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	cmd, err := s.command(mark{}, gate, null, append([]string{"timeout", "-k", "1", strconv.Itoa(int(checkTime.Seconds()))}, argv...))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	began := time.Now()
	if err := s.start(cmd); err != nil {
		return nil, err
	}
	if _, err := pen.WriteString("go\n"); err != nil {
		return nil, errors.Join(err, cmd.Wait())
	}
	err = cmd.Wait()
	// As timeout reports. A kill that came earlier was not its own.
	code, killed := cmd.ProcessState.ExitCode(), 128+int(unix.SIGKILL)
	if code == 124 || code == killed && time.Since(began) >= checkTime {
		err = errTimedOut
	}
	return out.Bytes(), err
}

func firstLine(out []byte, err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if line == "" {
		return err.Error()
	}
	return line
}

// usernsHint returns the setting that forbids user namespaces, if there is one.
func usernsHint() string {
	for _, s := range []struct{ file, forbids, set string }{
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"},
		{"/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces=10000"},
	} {
		b, err := os.ReadFile(s.file)
		if err == nil && strings.TrimSpace(string(b)) == s.forbids {
			return ": this system forbids user namespaces to ordinary users; allow them with: sysctl " + s.set
		}
	}
	return ""
}
