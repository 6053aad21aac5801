package local

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/workspaces/runtime"
)

// The network of a sandbox. Its addresses are reserved for documentation, so that they hide
// no network that a workspace may want to reach.
var (
	innerNetwork = netip.MustParsePrefix("203.0.113.0/24")
	innerDNS     = netip.MustParseAddr("203.0.113.3")
)

const (
	linkMTU   = "65520"
	tunDevice = "/dev/net/tun"
)

// connectTime is how long the network of a starting sandbox may take.
const connectTime = time.Minute

// A helper that fails when a sandbox starts is started this many times, after these pauses:
// without it the workspace would fail, for what may pass.
const (
	connectTries = 3
	connectPause = 200 * time.Millisecond
)

// killDelay is how long the output of a program that was killed is waited for.
const killDelay = time.Second

// networkCheck is the period of looking whether the helpers run.
const networkCheck = 5 * time.Second

// network makes network namespaces with a way out: slirp4netns, a TCP/IP stack in user space,
// opens the connections of a sandbox as the sandbox's user.
type network struct {
	helper, nsenter, ip string
	makeDevice          bool        // tunDevice is closed to the user
	missing             models.Text // why sandboxes share the network of the machine; empty if they do not
	wait                time.Duration
}

// findNetwork returns what this machine can do for sandboxes of a user.
func findNetwork(user identity) network {
	n := network{wait: connectTime}
	for _, program := range []struct {
		name string
		path *string
	}{{"slirp4netns", &n.helper}, {"nsenter", &n.nsenter}, {"ip", &n.ip}} {
		for _, candidate := range []string{program.name, "/usr/sbin/" + program.name, "/sbin/" + program.name} {
			if found, err := exec.LookPath(candidate); err == nil && *program.path == "" {
				*program.path = found
			}
		}
		if *program.path == "" {
			n.missing = models.Say("shared with this machine and other workspaces: the program %s is not installed", program.name)
			return n
		}
	}
	info, err := os.Stat(tunDevice)
	if err == nil && (info.Mode().Perm()&0o006 == 0o006 || !user.drop && unix.Access(tunDevice, unix.R_OK|unix.W_OK) == nil) {
		return n
	}
	n.makeDevice = true
	if err != nil || !canStage() || onSpareThread(openDevice) != nil {
		n.missing = models.Say("shared with this machine and other workspaces: %s cannot be opened", tunDevice)
	}
	return n
}

// limit says how the network of a sandbox with some allowed connections is separated.
func (n network) limit(allowed *runtime.Outgoing) models.Limit {
	limit := models.Limit{Resource: "network", Enforced: n.missing.Empty()}
	switch {
	case !limit.Enforced:
		limit.How = n.missing
	case allowed == nil:
		limit.How = models.Say("a network of its own, with a way to other machines but not to this one")
	case len(allowed.Unknown) > 0:
		limit.How = models.Say("a network of its own, with a way only to the hosts that the project lists; unknown when it started: %s",
			strings.Join(allowed.Unknown, ", "))
	case len(allowed.Networks) > 0:
		limit.How = models.Say("a network of its own, with a way only to the hosts that the project lists")
	default:
		limit.How = models.Say("a network of its own without a way to other machines, as the project requires")
	}
	return limit
}

// check refuses to start a sandbox whose connections this machine cannot restrict.
func (n network) check(allowed *runtime.Outgoing) error {
	if allowed != nil && !n.missing.Empty() {
		return models.Conflict("The project restricts outgoing connections, which this machine cannot enforce: its network is %s.", n.missing)
	}
	return nil
}

// openDevice lets every user of this thread's mounts open the device of network interfaces.
func openDevice() error {
	if err := privateMounts(); err != nil {
		return err
	}
	var real unix.Stat_t
	if err := unix.Stat(tunDevice, &real); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", stageDir, "tmpfs", unix.MS_NOSUID, "mode=755,size=64k"); err != nil {
		return err
	}
	device := stagePath(0)
	if err := unix.Mknod(device, unix.S_IFCHR, int(real.Rdev)); err != nil {
		return err
	}
	if err := errors.Join(unix.Chmod(device, 0o666), unix.Mount(device, tunDevice, "", unix.MS_BIND, "")); err != nil {
		return err
	}
	return unix.Unmount(stageDir, unix.MNT_DETACH)
}

// ownNetwork gives the sandbox a network namespace with nothing but a loopback interface. It
// waits until the returned file is written or closed. Its pid 1 keeps the FIFO open, by which
// the helper notices its end.
func (s *sandbox) ownNetwork(fifo string) (unblock *os.File) {
	read, unblock, err := os.Pipe()
	if err != nil {
		s.fail(err)
		return nil
	}
	// Opened for both ways: there is no reader yet.
	alive, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		s.fail(errors.Join(err, read.Close()))
		return unblock
	}
	s.add("--unshare-net", "--block-fd", s.inherit(read), "--sync-fd", s.inherit(alive))
	return unblock
}

// resolverSettings are those of this machine, whose resolver the helper asks.
func resolverSettings() string {
	lines := []string{"nameserver " + innerDNS.String()}
	b, _ := os.ReadFile("/etc/resolv.conf")
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && (f[0] == "search" || f[0] == "options") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// connectFirst gives a sandbox that starts its way out.
func (r *Runtime) connectFirst(ctx context.Context, in *instance) error {
	ctx, cancel := context.WithTimeout(ctx, r.network.wait)
	defer cancel()
	for try := 1; ; try++ {
		err := r.connect(ctx, in)
		if err == nil || try == connectTries || !models.Sleep(ctx, connectPause) {
			return err
		}
		r.config.Logger.Warn("the network of a sandbox failed and is tried again", "workspace", in.Workspace, "error", err)
	}
}

// connect gives a sandbox its way out, unless it has one.
func (r *Runtime) connect(ctx context.Context, in *instance) error {
	ctx, cancel := context.WithTimeout(ctx, r.network.wait)
	defer cancel()
	for !in.mapped() {
		if in.outer() == gone {
			return nil // its end is reported elsewhere
		}
		if !models.Sleep(ctx, 2*time.Millisecond) {
			return ctx.Err()
		}
	}
	alive, err := os.OpenFile(in.networkFile(), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer alive.Close()
	// The helper inherits the lock, and holds it to its end.
	if err := unix.Flock(int(alive.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil
	} else if err != nil {
		return err
	}
	user, netns, err := in.networkNamespace()
	if err != nil {
		if in.inner(in.sandboxStatus()) == gone {
			return nil
		}
		return err
	}
	defer user.Close()
	defer netns.Close()
	if err := r.closeRoutes(ctx, in, user, netns); err != nil {
		return err
	}
	return r.startHelper(ctx, in, user, netns, alive)
}

// mapped reports whether the user namespace of a sandbox has its users, without which nobody
// has rights in it.
func (in *instance) mapped() bool {
	rep := in.sandboxStatus()
	if rep.Child == 0 {
		return false
	}
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/uid_map", rep.Child))
	return len(b) > 0
}

// networkNamespace opens the namespace of a sandbox's network and the user namespace that it
// belongs to. The process is checked when they are open.
func (in *instance) networkNamespace() (user, netns *os.File, err error) {
	rep := in.sandboxStatus()
	netns, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", rep.Child))
	if err != nil {
		return nil, nil, err
	}
	fd, err := unix.IoctlRetInt(int(netns.Fd()), unix.NS_GET_USERNS)
	if err == nil && !in.innerAlive(rep) {
		err = errors.Join(errors.New("the sandbox has ended"), unix.Close(fd))
	}
	if err != nil {
		return nil, nil, errors.Join(err, netns.Close())
	}
	return os.NewFile(uintptr(fd), "user namespace"), netns, nil
}

// closeRoutes forbids, before there is a way out, the addresses that a sandbox must not reach.
// The programs in it have no right to change routes.
func (r *Runtime) closeRoutes(ctx context.Context, in *instance, user, netns *os.File) error {
	machine, err := machineNetworks()
	if err != nil {
		return err
	}
	var batch strings.Builder
	for _, network := range closedRoutes(machine, in.Outgoing) {
		fmt.Fprintf(&batch, "route replace prohibit %s\n", network)
	}
	cmd := exec.CommandContext(ctx, r.network.nsenter, "--user=/proc/self/fd/3", "--net=/proc/self/fd/4", "--preserve-credentials", "--",
		r.network.ip, "-batch", "-")
	cmd.WaitDelay = killDelay
	r.asUserOf(in, cmd)
	cmd.ExtraFiles = []*os.File{user, netns}
	cmd.Stdin = strings.NewReader(batch.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("close the routes of a sandbox: %s", firstLine(out, err))
	}
	return nil
}

// closeNew closes the routes of a sandbox again if this machine has other networks than were closed.
func (r *Runtime) closeNew(ctx context.Context, in *instance, closed *[]netip.Prefix) error {
	machine, err := machineNetworks()
	if err != nil || slices.Equal(machine, *closed) || !in.mapped() {
		return err
	}
	user, netns, err := in.networkNamespace()
	if err != nil {
		return nil // it has ended
	}
	defer user.Close()
	defer netns.Close()
	if err := r.closeRoutes(ctx, in, user, netns); err != nil {
		return err
	}
	*closed = machine
	return nil
}

// asUserOf runs a command as the user of the sandbox, who owns its namespaces.
func (r *Runtime) asUserOf(in *instance, cmd *exec.Cmd) {
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if r.user.drop {
		uid := cmp.Or(in.UID, r.user.uid)
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: cmp.Or(in.GID, r.user.gid)}
	}
}

// startHelper starts slirp4netns in the cgroup of the workspace. It ends when the sandbox
// ends, whether or not a server runs. One that is not ready in time is killed.
func (r *Runtime) startHelper(ctx context.Context, in *instance, user, netns, alive *os.File) error {
	ready, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	defer tell.Close()
	log, err := os.OpenFile(filepath.Join(in.dir, "network.log"), os.O_CREATE|os.O_RDWR|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	// In the user namespace it has the rights to leave the files of this machine.
	cmd := exec.Command(r.network.nsenter, "--user=/proc/self/fd/3", "--preserve-credentials", "--",
		r.network.helper, "--configure", "--mtu="+linkMTU, "--cidr="+innerNetwork.String(), "--disable-host-loopback",
		"--enable-sandbox", "--enable-seccomp", "--exit-fd=5", "--ready-fd=6", "--netns-type=path", "/proc/self/fd/4", "tap0")
	r.asUserOf(in, cmd)
	cmd.ExtraFiles = []*os.File{user, netns, alive, tell}
	cmd.Stderr = log // its settings, on the standard output, would follow the error
	if err := r.startWithDevice(cmd); err != nil {
		return fmt.Errorf("start slirp4netns: %w", err)
	}
	in.Cgroup.join(cmd.Process.Pid)
	tell.Close()
	stop := context.AfterFunc(ctx, func() { ready.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	n, _ := ready.Read(make([]byte, 1))
	if n == 0 {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // with what it has started; not reaped, the number is still its own
	}
	go reap(cmd) // it may outlive this Runtime
	switch {
	case n > 0:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("slirp4netns is not ready within %s: %w", r.network.wait, ctx.Err())
	}
	return fmt.Errorf("slirp4netns: %s", lastLine(readEnd(log.Name(), 1<<10)))
}

func lastLine(out []byte) []byte {
	out = bytes.TrimSpace(out)
	return out[bytes.LastIndexByte(out, '\n')+1:]
}

func (r *Runtime) startWithDevice(cmd *exec.Cmd) error {
	if !r.network.makeDevice {
		return cmd.Start()
	}
	return onSpareThread(func() error { return errors.Join(openDevice(), cmd.Start()) })
}

// release lets a starting sandbox go on.
func (in *instance) release() {
	if in.unblock != nil {
		in.unblock.Close()
	}
}

// keepConnected connects a sandbox, and starts its helper again if it has ended. Networks that this
// machine gets later are closed, too.
func (r *Runtime) keepConnected(ctx context.Context, in *instance) {
	var err error
	if in.connected == nil {
		err = r.connect(ctx, in)
	} else {
		if err = r.connectFirst(ctx, in); err == nil {
			in.release()
		}
		in.connected <- err
	}
	var closed []netip.Prefix // by this server, after the start
	for failed := false; ; err = errors.Join(r.connect(ctx, in), r.closeNew(ctx, in, &closed)) {
		if err != nil && ctx.Err() == nil && !failed {
			r.config.Logger.Warn("a workspace has no network", "workspace", in.Workspace, "error", err)
		}
		failed = err != nil
		if !models.Sleep(ctx, networkCheck) {
			return
		}
	}
}
