package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A process is ended only if it is the recorded one.
func TestRecordsNameOneProcess(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r, ok := recordOf(cmd.Process.Pid)
	if !ok {
		t.Fatal("the process has no record")
	}
	other := record{r.pid, r.start + "1"} // the id, used again
	if err := other.end(); err != nil {
		t.Error(err)
	}
	if !r.alive() {
		t.Error("another's record ended the process")
	}
	if read, ok := parseRecord(r.String()); !ok || read != r {
		t.Errorf("%v was read as %v", r, read)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if r.alive() {
		t.Error("a process that nobody has collected counts as alive")
	}
	_ = cmd.Wait()
	for _, text := range []string{"", "12", "x 1", "0 1", "-1 1", "1 "} {
		if r, ok := parseRecord(text); ok {
			t.Errorf("%q was read as %v", text, r)
		}
	}
}

func TestMountsBelow(t *testing.T) {
	const info = `22 1 254:0 / / rw - ext4 /dev/vda rw
42 22 0:1 / /tmp/c/x rw,relatime shared:1 - ext4 /dev/vda rw
43 42 0:2 / /tmp/c/x/with\040space rw - tmpfs shm rw
44 22 0:3 / /tmp/cluster rw - tmpfs shm rw
45 22 0:4 / /tmp/c rw - tmpfs shm rw
`
	if got, want := mountsBelow(info, "/tmp/c"), []string{"/tmp/c/x", "/tmp/c/x/with space"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestFreeSubnet(t *testing.T) {
	parse := netip.MustParsePrefix
	for _, c := range []struct {
		first byte
		used  []netip.Prefix
		want  string
	}{
		{7, nil, "10.88.7.0/24"},
		{7, []netip.Prefix{parse("10.88.7.1/24"), parse("192.0.2.2/24")}, "10.88.8.0/24"},
		{255, []netip.Prefix{parse("10.88.255.9/32")}, "10.88.0.0/24"},
		{1, []netip.Prefix{parse("10.0.0.1/8")}, ""},
	} {
		got, err := freeSubnet(c.first, c.used)
		if (err == nil) != (c.want != "") || err == nil && got.String() != c.want {
			t.Errorf("from %d beside %v: %v, %v; want %q", c.first, c.used, got, err, c.want)
		}
	}
	if host := (network{Subnet: parse("10.88.7.0/24")}).host().String(); host != "10.88.7.1" {
		t.Errorf("the host is %s", host)
	}
}

// Only a cluster's directory is used or removed.
func TestDirectories(t *testing.T) {
	full := t.TempDir()
	kept := filepath.Join(full, "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := claim(full); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a directory with files: %v", err)
	}
	if err := Stop(full); err == nil || !strings.Contains(err.Error(), "not the directory of a cluster") {
		t.Errorf("stopping there: %v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	if _, err := claim(filepath.Join(t.TempDir(), strings.Repeat("x", longest))); err == nil || !strings.Contains(err.Error(), "80") {
		t.Errorf("a path that is too long: %v", err)
	}
	mine, err := claim(filepath.Join(t.TempDir(), "new"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Stop(mine); err != nil {
		t.Error(err)
	}
	if err := Stop(mine); err != nil {
		t.Errorf("again: %v", err)
	}
}

// The error of an ended program contains the end of its log.
func TestFailureShowsTheLog(t *testing.T) {
	c := &Cluster{dir: t.TempDir()}
	p, err := c.spawn("broken", "/bin/sh", "-c", "echo what went wrong; exit 1")
	if err != nil {
		t.Fatal(err)
	}
	err = await(t.Context(), p, func(context.Context) error { return errors.New("no answer") })
	if err == nil || !strings.Contains(err.Error(), "it has ended") || !strings.Contains(err.Error(), "what went wrong") {
		t.Errorf("%v", err)
	}
	p, err = c.spawn("slow", "/bin/sleep", "600")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := await(ctx, p, func(context.Context) error { return errors.New("no answer") }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := endPrograms(c.dir); err != nil {
		t.Fatal(err)
	}
	if r, ok := recordOf(p.pid); ok {
		// Its name is not one of a cluster's programs, so it was not ended.
		if err := r.end(); err != nil {
			t.Error(err)
		}
	} else {
		t.Error("a process was ended that is not a cluster's")
	}
	<-p.done
}

// The keys are valid for each other only.
func TestKeys(t *testing.T) {
	k, err := newKeys(filepath.Join(t.TempDir(), "keys"))
	if err != nil {
		t.Fatal(err)
	}
	if err := k.issue("x", "system:node:n", []string{"system:nodes"}, []string{"127.0.0.1", "name"}); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(k.public("x"), k.private("x"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(k.cert)
	for host, ok := range map[string]bool{"127.0.0.1": true, "name": true, "127.0.0.2": false} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); (err == nil) != ok {
			t.Errorf("%s: %v", host, err)
		}
	}
	info, err := os.Stat(k.private("x"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode is %v, %v", info.Mode(), err)
	}
	if got := pair.Leaf.Subject; got.CommonName != "system:node:n" || !slices.Equal(got.Organization, []string{"system:nodes"}) {
		t.Errorf("%v", got)
	}
}
