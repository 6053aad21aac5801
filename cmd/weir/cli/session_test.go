package cli

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// terminal is one that a person could sit at.
func terminal(t *testing.T) *os.File {
	t.Helper()
	leader, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { leader.Close() })
	if err := unix.IoctlSetPointerInt(int(leader.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(leader.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return tty
}

// A person is asked only at a terminal, for both the question and the reply.
func TestInteractive(t *testing.T) {
	tty := terminal(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, c := range []struct {
		in     io.Reader
		errOut io.Writer
		never  bool
		want   bool
	}{
		{tty, tty, false, true},
		{tty, tty, true, false},
		{null, tty, false, false},
		{tty, io.Discard, false, false},
	} {
		cmd := &cobra.Command{}
		cmd.SetIn(c.in)
		cmd.SetErr(c.errOut)
		r := connection{server: "http://x", token: "t", timeout: time.Second, noInteractive: c.never}
		s, err := r.open(cmd, func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		if s.interactive != c.want {
			t.Errorf("%+v: a person is asked: %t", c, s.interactive)
		}
	}
}

// In a workspace, commands call the portal as the workspace, unless a token or a portal is named.
func TestInsideWorkspace(t *testing.T) {
	machine := map[string]string{"WEIR_URL": "https://weir.example", "WEIR_SOCKET": "/run/weir-api/api.sock"}
	cluster := map[string]string{"WEIR_URL": "https://weir.example", "WEIR_API": "http://10.0.0.1:8081", "WEIR_API_TOKEN": "weirw_1_x"}
	for name, c := range map[string]struct {
		env    map[string]string
		flags  connection
		inside bool
		server string
		token  string
	}{
		"machine":           {env: machine, inside: true, server: "https://weir.example"},
		"cluster":           {env: cluster, inside: true, server: "http://10.0.0.1:8081", token: "weirw_1_x"},
		"with a token":      {env: cluster, flags: connection{token: "t"}, server: "https://weir.example", token: "t"},
		"another portal":    {env: cluster, flags: connection{server: "https://other.example", token: "t"}, server: "https://other.example", token: "t"},
		"without its token": {env: machine, flags: connection{server: "https://other.example"}},
	} {
		c.flags.timeout = time.Second
		s, err := c.flags.open(&cobra.Command{}, func(name string) (string, bool) { text, ok := c.env[name]; return text, ok })
		if c.server == "" {
			if err == nil {
				t.Errorf("%s: no error", name)
			}
			continue
		}
		if err != nil || s.inside != c.inside || s.server != c.server || s.token != c.token {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}
