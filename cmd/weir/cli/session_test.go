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
