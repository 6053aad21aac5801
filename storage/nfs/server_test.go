package nfs

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const patience = time.Minute

// world is a running server on loopback.
type world struct {
	*testing.T
	Config
	host              string
	direct, forwarded string // ports: the server's, and that of clients at 127.0.0.2
}

// open starts a server for clients at 127.0.0.1. Projects 7 and 9 exist.
func open(t *testing.T) world {
	t.Helper()
	return openAt(t, "127.0.0.1", "127.0.0.1/32")
}

func openAt(t *testing.T, host string, nodes ...string) world {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("Ganesha opens files by handle, which needs root")
	}
	w := world{T: t, host: host}
	w.Config = Config{Root: t.TempDir(), Dir: t.TempDir(), Listen: freeAddress(t, host), Path: "/weir", Nodes: prefixes(nodes...), Servers: prefixes("127.0.0.2/32")}
	for _, dir := range []string{"notebook/7", "notebook/9", "public_algorithm", "public_model", "public_dataset"} {
		w.must(os.MkdirAll(w.file(dir), 0o755))
	}
	w.must(os.Chown(w.file("notebook/7"), 62001, 52007))
	w.must(os.Chmod(w.file("notebook/7"), 0o2770))
	w.direct = strconv.Itoa(int(w.Listen.Port()))
	w.forwarded = forward(t, w.Listen)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, w.Config, slog.New(slog.NewTextHandler(t.Output(), nil))) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if conn, err := net.Dial("tcp", w.Listen.String()); err == nil {
			conn.Close()
			t.Error("the server has outlived its context")
		}
	})
	w.eventually("serves", func() bool { _, err := w.run("nfs-ls", w.url("public_model")); return err == nil })
	return w
}

func (w world) file(name string) string { return filepath.Join(w.Root, name) }

func (w world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w world) url(name string) string { return w.urlAt(w.direct, "/weir/"+name) }

func (w world) urlAt(port, path string, options ...string) string {
	return "nfs://" + w.host + path + "?" + strings.Join(append(options, "version=4", "nfsport="+port), "&")
}

// run runs one of libnfs' programs.
func (w world) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// refused runs a program that the server refuses for a reason.
func (w world) refused(reason string, args ...string) {
	w.Helper()
	if out, err := w.run(args...); err == nil || !strings.Contains(err.Error(), reason) {
		w.Errorf("%s: want %s: %v, %s", strings.Join(args, " "), reason, err, out)
	}
}

func (w world) eventually(what string, ok func() bool) {
	w.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			w.Fatalf("not within %s: %s", patience, what)
		}
	}
}

func freeAddress(t *testing.T, host string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return netip.MustParseAddrPort(l.Addr().String())
}

// forward listens on a port whose connections come from 127.0.0.2 for the server.
func forward(t *testing.T, to netip.AddrPort) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := dialer.Dial("tcp", to.String())
			if err != nil {
				client.Close()
				continue
			}
			go func() { defer server.Close(); io.Copy(server, client) }()
			go func() { defer client.Close(); io.Copy(client, server) }()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func TestReadAndWrite(t *testing.T) {
	w := open(t)
	source := filepath.Join(t.TempDir(), "source")
	content := make([]byte, 1500) // libnfs 4.0 cannot encode a larger write of NFSv4
	rand.Read(content)
	w.must(os.WriteFile(source, content, 0o600))
	member := []string{"uid=62001", "gid=52007"}
	if _, err := w.run("nfs-cp", source, w.urlAt(w.direct, "/weir/notebook/7/model", member...)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(w.file("notebook/7/model"))
	w.must(err)
	if at := info.Sys().(*syscall.Stat_t); at.Uid != 62001 || at.Gid != 52007 {
		t.Errorf("it belongs to %d:%d", at.Uid, at.Gid)
	}
	if got, err := os.ReadFile(w.file("notebook/7/model")); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes arrived, %v", len(got), err)
	}
	// Of the project's group, and of no group.
	if got, err := w.run("nfs-cat", w.urlAt(w.direct, "/weir/notebook/7/model", "uid=62002", "gid=52007")); err != nil || got != string(content) {
		t.Errorf("%d bytes are read, %v", len(got), err)
	}
	w.refused("NFS4ERR_ACCESS", "nfs-cat", w.urlAt(w.direct, "/weir/notebook/7/model", "uid=62002", "gid=52008"))
	// Root gets through the project's directories, as its group, and is nobody otherwise.
	root := []string{"uid=0", "gid=0"}
	if out, err := w.run("nfs-ls", w.urlAt(w.direct, "/weir/notebook/7", root...)); err != nil || !strings.Contains(out, "model") {
		t.Errorf("%q, %v", out, err)
	}
	// What is changed on the server's machine holds at once.
	w.must(os.Chmod(w.file("notebook/7/model"), 0o600))
	w.must(os.WriteFile(w.file("notebook/7/beside"), nil, 0o644))
	if out, err := w.run("nfs-ls", w.urlAt(w.direct, "/weir/notebook/7", root...)); err != nil || !strings.Contains(out, "beside") {
		t.Errorf("%q, %v", out, err)
	}
	w.refused("NFS4ERR_ACCESS", "nfs-cat", w.urlAt(w.direct, "/weir/notebook/7/model", root...))
	w.must(os.WriteFile(w.file("public_model/weights"), []byte("weights"), 0o666))
	w.must(os.Chmod(w.file("public_model"), 0o777))
	if got, err := w.run("nfs-cat", w.url("public_model/weights")); err != nil || got != "weights" {
		t.Errorf("%q, %v", got, err)
	}
	w.refused("NFS4ERR_ROFS", "nfs-cp", source, w.urlAt(w.direct, "/weir/public_model/new", member...))
	if entries, err := os.ReadDir(w.file("public_model")); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// Only the nodes' addresses get the exports of projects, and only the servers' that of
// everything.
func TestClients(t *testing.T) {
	w := open(t)
	w.must(os.WriteFile(w.file("notebook/9/file"), []byte("content"), 0o644))
	for path, port := range map[string]string{"/weir/notebook/9/file": w.direct, "/weir-all/notebook/9/file": w.forwarded} {
		if got, err := w.run("nfs-cat", w.urlAt(port, path)); err != nil || got != "content" {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	w.refused("NFS4ERR", "nfs-cat", w.urlAt(w.forwarded, "/weir/notebook/9/file"))
	w.refused("NFS4ERR", "nfs-cat", w.urlAt(w.direct, "/weir-all/notebook/9/file"))
	source := filepath.Join(t.TempDir(), "source")
	w.must(os.WriteFile(source, []byte("from a server"), 0o644))
	if _, err := w.run("nfs-cp", source, w.urlAt(w.forwarded, "/weir-all/public_model/new", "uid=0", "gid=0")); err != nil {
		t.Error(err) // its root is root
	}
}

// Networks of IPv6 are understood as they are meant.
func TestIPv6(t *testing.T) {
	w := openAt(t, "::1", "fd00::/64", "::/64", "fd00::9/128")
	w.must(os.WriteFile(w.file("notebook/9/file"), []byte("content"), 0o644))
	if got, err := w.run("nfs-cat", w.url("notebook/9/file")); err != nil || got != "content" {
		t.Errorf("%q, %v", got, err)
	}
	w.refused("NFS4ERR", "nfs-ls", w.urlAt(w.direct, "/weir-all"))
}

// Projects come and go while a client reads a file of another export in one piece.
func TestExportsChange(t *testing.T) {
	w := open(t)
	content := make([]byte, 64<<20)
	rand.Read(content)
	w.must(os.WriteFile(w.file("public_dataset/data"), content, 0o644))
	reader := exec.CommandContext(t.Context(), "nfs-cat", w.url("public_dataset/data"))
	out, err := reader.StdoutPipe()
	w.must(err)
	w.must(reader.Start())
	got := make([]byte, 1<<20)
	_, err = io.ReadFull(out, got)
	w.must(err)

	w.must(os.Mkdir(w.file("notebook/8"), 0o755))
	w.must(os.WriteFile(w.file("notebook/8/new"), []byte("new"), 0o644))
	w.eventually("the new project is exported", func() bool {
		text, err := w.run("nfs-cat", w.url("notebook/8/new"))
		return err == nil && text == "new"
	})
	w.must(os.RemoveAll(w.file("notebook/9")))
	w.eventually("the old project is not exported", func() bool {
		_, err := w.run("nfs-ls", w.url("notebook/9"))
		return err != nil && strings.Contains(err.Error(), "NFS4ERR_NOENT")
	})
	w.must(os.Chown(w.file("notebook/8"), 0, 52008))
	w.must(os.Chmod(w.file("notebook/8"), 0o2750))
	w.eventually("the export follows the group", func() bool {
		_, err := w.run("nfs-ls", w.urlAt(w.direct, "/weir/notebook/8", "uid=0", "gid=0"))
		return err == nil
	})
	rest, err := io.ReadAll(out)
	w.must(err)
	w.must(reader.Wait())
	if !bytes.Equal(append(got, rest...), content) {
		t.Error("the reader got something else")
	}
}

func TestRestart(t *testing.T) {
	w := open(t)
	text, err := os.ReadFile(filepath.Join(w.Dir, "ganesha.pid"))
	w.must(err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	w.must(err)
	w.must(syscall.Kill(pid, syscall.SIGKILL))
	w.eventually("another server serves", func() bool {
		again, err := os.ReadFile(filepath.Join(w.Dir, "ganesha.pid"))
		if err != nil || string(again) == string(text) {
			return false
		}
		_, err = w.run("nfs-ls", w.url("notebook/9"))
		return err == nil
	})
}
