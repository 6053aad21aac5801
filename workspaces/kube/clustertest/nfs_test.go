//go:build cluster

package clustertest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"weir/models"
	"weir/storage/nfs"
	"weir/workspaces/kube"
	"weir/workspaces/runtime"
)

// serveNFS exports the shared root to this machine, and returns the port.
func serveNFS(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(l.Addr().String())
	l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	c := nfs.Config{Root: root, Dir: t.TempDir(), Listen: at, Path: "/weir", Nodes: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	ended := make(chan error, 1)
	go func() { ended <- nfs.Run(ctx, c, slog.New(slog.NewTextHandler(t.Output(), nil))) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return strconv.Itoa(int(at.Port()))
}

// The kubelet mounts the exports of a real NFS server. What the mounts of a workspace
// say holds on them, for its user and with directories that are closed to others.
func TestNFSThroughTheKubelet(t *testing.T) {
	if harness.Dir() == "" {
		t.Skip("the nodes of another cluster have no NFS client of ours")
	}
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skipf("without an NFS client in the kernel, the node needs FUSE: %v", err)
	} else {
		f.Close()
	}
	top := root + layout(project)[0].Path
	const member, group = 1900000009, 1900000007
	for name, owner := range map[string]int{"9": member, "10": member + 1, "project_model": user} {
		dir := filepath.Join(top, name)
		if err := errors.Join(os.Mkdir(dir, 0o770), os.Chown(dir, owner, group), os.Chmod(dir, 0o770|os.ModeSetgid)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
	}
	if err := errors.Join(os.Chown(top, user, group), os.Chmod(top, 0o750|os.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(os.Chown(top, user, user), os.Chmod(top, 0o755)); err != nil {
			t.Error(err)
		}
	})
	c := config(t)
	c.Storage = kube.Storage{NFSServer: "127.0.0.1", NFSPath: "/weir", MountOptions: []string{"nfsvers=4", "port=" + serveNFS(t)}}
	r := open(t, c)
	s := script(`
		echo content >/home/jovyan/mine && cat /notebook/7/9/mine
		echo weights >/notebook/7/project_model/weights && cat /notebook/7/project_model/weights
		touch /notebook/7/10/colleague || touch /notebook/7/new || touch /public_model/new || echo refused
		ls /notebook /notebook/7 && grep /notebook/7 /proc/mounts
		exec sleep 600`)
	s.UID, s.GID = member, group
	s.Mounts = []models.Mount{
		{Source: top, Target: "/notebook/7", ReadOnly: true}, {Source: top + "/9", Target: "/notebook/7/9"}, {Source: top + "/9", Target: "/home/jovyan"},
		{Source: top + "/project_model", Target: "/notebook/7/project_model"}, {Source: root + "/public_model", Target: "/public_model", ReadOnly: true},
	}
	state := start(t, r, s)
	log := until(t, r, state, "uses the directories", func(s runtime.Status) bool {
		return strings.Contains(s.LogTail, "nfs /notebook/7/project_model fuse")
	}).LogTail
	for _, want := range []string{"content\n", "weights\n", "'/notebook/7/10/colleague': Read-only file system", "'/notebook/7/new': Read-only file system",
		"'/public_model/new': Read-only file system", "refused\n", "nfs /notebook/7 fuse ro"} {
		if !strings.Contains(log, want) {
			t.Errorf("without %q:\n%s", want, log)
		}
	}
	for name, content := range map[string]string{"9/mine": "content\n", "project_model/weights": "weights\n"} {
		b, err := os.ReadFile(filepath.Join(top, name))
		if err != nil || string(b) != content {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if info, err := os.Stat(filepath.Join(top, "9/mine")); err != nil || info.Sys().(*syscall.Stat_t).Uid != member || info.Sys().(*syscall.Stat_t).Gid != group {
		t.Errorf("%+v, %v", info, err)
	}
	if err := r.Stop(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	until(t, r, state, "exited, with its volumes unmounted", is(runtime.PhaseExited))
}
