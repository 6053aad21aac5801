package local

import (
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/workspaces/runtime"
)

// otherMachine is what a sandbox reaches by its way out: a network namespace behind a link.
// It returns the address of a server there, which sends each client what serve writes.
func otherMachine(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	link := fmt.Sprintf("weirt%d", os.Getpid())
	run := func(args ...string) error {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %v: %w: %s", args, err, out)
		}
		return nil
	}
	var listener net.Listener
	err := onSpareThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		for _, command := range []string{
			"link add " + link + " type veth peer name there netns " + fmt.Sprint(os.Getpid()),
			"addr add 198.51.100.2/24 dev " + link, "link set " + link + " mtu 65521 up", "link set lo up",
		} {
			if err := run(strings.Fields(command)...); err != nil {
				return err
			}
		}
		var err error
		listener, err = net.Listen("tcp4", "198.51.100.2:0")
		return err
	})
	if err == nil {
		t.Cleanup(func() { listener.Close(); _ = run("link", "del", "there") })
		err = run("addr", "add", "198.51.100.1/24", "dev", "there")
	}
	if err == nil {
		err = run("link", "set", "there", "mtu", "65521", "up")
	}
	if err != nil {
		t.Fatal(err)
	}
	accept(listener, serve)
	return listener.Addr().String()
}

// accept serves the clients of a listener until it is closed.
func accept(listener net.Listener, serve func(net.Conn)) {
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { serve(conn); conn.Close() }()
		}
	}()
}

func greet(conn net.Conn) { fmt.Fprintln(conn, "hello") }

// connecting prints, for each address, what a client gets from it.
const connecting = `exec python3 -c '
import socket, sys
for address in sys.argv[1:]:
    host, port = address.rsplit(":", 1)
    try:
        with socket.create_connection((host.strip("[]"), int(port)), 20) as c: print(address, c.recv(100).decode().strip())
    except OSError as e: print(address, "refused")
' `

// asking prints why the resolver of the way out does not answer.
const asking = `python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
try: s.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0\7example\3org\0\0\1\0\1", ("203.0.113.3", 53)); print("resolver", len(s.recv(512)))
except OSError as e: print("resolver", type(e).__name__)
'; `

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func separateNetwork(t testing.TB, r *Runtime) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can make another machine")
	}
	if l := r.network.limit(nil); !l.Enforced {
		t.Fatalf("the network is %s (“tools/setup test” installs what is missing)", l.How)
	}
}

// A sandbox reaches other machines, and nothing of this one: neither the loopback interface
// nor another address of it, at which the portal listens.
func TestNetworkOfItsOwn(t *testing.T) {
	r := open(t, config(t.TempDir()))
	separateNetwork(t, r)
	other := otherMachine(t, greet)
	here, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	accept(here, greet)
	_, port, _ := net.SplitHostPort(here.Addr().String())
	closed := []string{"127.0.0.1:" + port, "[::1]:" + port, "203.0.113.2:" + port, "169.254.169.254:80", "100.100.100.200:80"}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		closed = append(closed, net.JoinHostPort(a.(*net.IPNet).IP.String(), port))
	}
	out := output(t, r, scriptSpec(1, connecting+other+" "+strings.Join(closed, " ")+"; cat /etc/resolv.conf"))
	if !strings.Contains(out, other+" hello\n") {
		t.Errorf("the other machine was not reached:\n%s", out)
	}
	for _, address := range closed {
		if !strings.Contains(out, address+" refused\n") {
			t.Errorf("%s was reached:\n%s", address, out)
		}
	}
}

// A sandbox reaches no containers of this machine: what a bridge connects that has no device of the
// machine, also if it was made after the start.
func TestNetworkWithoutContainers(t *testing.T) {
	r := open(t, config(t.TempDir()))
	separateNetwork(t, r)
	other := otherMachine(t, greet)
	state := start(t, r, scriptSpec(1, "while true; do ("+connecting+other+"); sleep 0.2; done"))
	says := func(what string) bool { return strings.Contains(poll(t, r, state).LogTail, other+" "+what) }
	eventually(t, "it reaches another machine", func() bool { return says("hello") })
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", "inside").Run() }) // it may not be there
	for _, command := range []string{"link add name inside type bridge", "addr del 198.51.100.1/24 dev there", "link set there master inside",
		"addr add 198.51.100.1/24 dev inside", "link set inside up"} {
		if out, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", command, err, out)
		}
	}
	eventually(t, "this machine reaches its container", func() bool {
		conn, err := net.Dial("tcp", other)
		return err == nil && conn.Close() == nil
	})
	if out := output(t, r, scriptSpec(2, connecting+other)); !strings.Contains(out, other+" refused\n") {
		t.Errorf("a later sandbox reaches it:\n%s", out)
	}
	lines := len(poll(t, r, state).LogTail)
	eventually(t, "the earlier one does not reach it any more", func() bool { return strings.Contains(poll(t, r, state).LogTail[lines:], other+" refused") })
}

// helperOf returns the process that is a sandbox's way out, or 0.
func helperOf(in *instance) int {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/5")
	for _, link := range links {
		var pid int
		if to, _ := os.Readlink(link); to != in.networkFile() && to != in.networkFile()+" (deleted)" {
			continue
		}
		fmt.Sscanf(link, "/proc/%d/", &pid)
		if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.HasPrefix(string(comm), "slirp4netns") {
			return pid
		}
	}
	return 0
}

// The helper belongs to the workspace: another server adopts it, starts it again when it has
// ended, and it ends with the sandbox although no server runs.
func TestNetworkHelperBelongsToItsWorkspace(t *testing.T) {
	c := config(t.TempDir())
	r := open(t, c)
	separateNetwork(t, r)
	other := otherMachine(t, greet)
	spec := scriptSpec(1, "trap 'exit 0' TERM; read -r _ </run/weir/go; "+connecting+other)
	spec.Memory = 256
	spec.Command[2] = "mkfifo /run/weir/go; " + spec.Command[2]
	state, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	in, err := r.parseState(state)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.kill)
	first := helperOf(in)
	if first == 0 || first == in.PID {
		t.Fatal("there is no helper")
	}
	for controller := range in.Cgroup {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", first)); !strings.Contains(string(b), cgroupName(in.dir, in.owner)) {
			t.Errorf("the helper is outside of the cgroup for %s: %s", controller, b)
		}
	}
	r.Close()
	second := open(t, c)
	poll(t, second, state)
	if err := second.connect(t.Context(), in); err != nil || helperOf(in) != first {
		t.Fatalf("the helper was not adopted: %v", err)
	}
	if err := unix.Kill(first, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it was started again", func() bool { pid := helperOf(in); return pid != 0 && pid != first })
	second.Close()
	in.kill()
	eventually(t, "it ends with the sandbox", func() bool { return helperOf(in) == 0 })
	third := open(t, c)
	eventually(t, "nothing is left", func() bool { return third.Stop(t.Context(), state) == nil && !exists(in.dir) })
}

// Where the helper is missing, workspaces start, and the page says what they share.
func TestMissingNetworkHelperIsShown(t *testing.T) {
	path := os.Getenv("PATH")
	t.Setenv("PATH", t.TempDir())
	n := findNetwork(identity{uid: testUser, gid: testUser, drop: true})
	t.Setenv("PATH", path)
	if l := n.limit(nil); l.Enforced || l.Resource != "network" || !strings.Contains(l.How.String(), "slirp4netns is not installed") {
		t.Errorf("it says %+v", l)
	}
	r := open(t, config(t.TempDir()))
	r.network = n
	spec := scriptSpec(1, "echo started")
	spec.Command[0] = "/bin/sh"
	state := start(t, r, spec)
	s := reach(t, r, state, runtime.PhaseExited)
	if l := limitOf(t, s, "network"); s.LogTail != "started\n" || l.Enforced || l.How.String() != n.missing.String() {
		t.Errorf("it says %+v and printed %q", l, s.LogTail)
	}
	spec.Workspace, spec.Outgoing = 2, &runtime.Outgoing{}
	if _, err := r.Start(t.Context(), spec); models.KindOf(err) != models.KindConflict || !strings.Contains(err.Error(), "slirp4netns is not installed") {
		t.Errorf("a project that restricts connections starts there: %v", err)
	}
}

// A sandbox reaches what its project lists, by address and by name, and nothing else, also by a
// way out that another server has made again.
func TestOutgoingConnections(t *testing.T) {
	r := open(t, config(t.TempDir()))
	separateNetwork(t, r)
	other := netip.MustParseAddrPort(otherMachine(t, greet))
	here, err := net.Listen("tcp", ":0") // at an address of this machine that is in the listed network
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	accept(here, greet)
	names := map[string][]netip.Addr{"mirror.example": {other.Addr()}}
	for i, c := range []struct {
		allowed     runtime.Outgoing
		reached     bool
		says, hosts string
	}{
		{runtime.Outgoing{}, false, "without a way to other machines", ""},
		{runtime.Outgoing{Networks: []netip.Prefix{netip.MustParsePrefix("198.51.100.128/25")}}, false, "only to the hosts that the project lists", ""},
		{runtime.Outgoing{Networks: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}, Names: names}, true, "lists", "mirror.example"},
		{runtime.Outgoing{Networks: []netip.Prefix{netip.PrefixFrom(other.Addr(), 32)}, Names: names, Unknown: []string{"gone.example"}}, true,
			"unknown when it started: gone.example", "mirror.example"},
	} {
		spec := scriptSpec(int64(i+1), "mkfifo /run/weir/go; read -r _ </run/weir/go; getent hosts mirror.example gone.example localhost; "+asking+connecting+
			fmt.Sprintf("%s mirror.example:%d 198.51.100.1:%d", other, other.Port(), portOf(here)))
		spec.Outgoing = &c.allowed
		state := start(t, r, spec)
		in, err := r.parseState(state)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.allowed.Unknown) > 0 { // once
			first := helperOf(in)
			r.Close()
			r = open(t, r.config)
			if err := unix.Kill(first, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			poll(t, r, state)
			eventually(t, "there is a helper again", func() bool { pid := helperOf(in); return pid != 0 && pid != first })
		}
		eventually(t, "it goes on", func() bool { return os.WriteFile(filepath.Join(in.shared(), "go"), []byte("\n"), 0) == nil })
		s := reach(t, r, state, runtime.PhaseExited)
		if l := limitOf(t, s, "network"); !l.Enforced || !strings.Contains(l.How.String(), c.says) {
			t.Errorf("%+v: it says %+v", c.allowed, l)
		}
		answer := map[bool]string{true: "hello", false: "refused"}[c.reached]
		for _, line := range []string{fmt.Sprintf("%s %s\n", other, answer), fmt.Sprintf("mirror.example:%d %s\n", other.Port(), answer),
			fmt.Sprintf("198.51.100.1:%d refused\n", portOf(here)), "resolver PermissionError\n", "localhost\n"} {
			if !strings.Contains(s.LogTail, line) {
				t.Errorf("%+v: without %q:\n%s", c.allowed, line, s.LogTail)
			}
		}
		if known := strings.Contains(s.LogTail, other.Addr().String()+"  "); known != (c.hosts != "") {
			t.Errorf("%+v: names:\n%s", c.allowed, s.LogTail)
		}
	}
}

// Cookies are not bound to a port: a notebook that serves a page at another port of localhost
// would get the portal's from a browser on this machine. The port is not there.
func TestPageOfANotebookGetsNoCookieOfThePortal(t *testing.T) {
	r := open(t, config(t.TempDir()))
	separateNetwork(t, r)
	portal := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "secret", Path: "/"})
	}))
	defer portal.Close()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	if _, err := browser.Get(portal.URL); err != nil {
		t.Fatal(err)
	}
	state := start(t, r, scriptSpec(1, `exec python3 -uc '
import http.server
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print("stole", self.headers["Cookie"])
        self.send_response(200); self.send_header("Page", "of the notebook"); self.end_headers()
server = http.server.HTTPServer(("", 0), Page)
print("port", server.server_port)
server.serve_forever()'`))
	port := 0
	eventually(t, "the page is served", func() bool {
		n, _ := fmt.Sscanf(poll(t, r, state).LogTail, "port %d\n", &port)
		return n == 1
	})
	lured := fmt.Sprintf("http://127.0.0.1:%d/", port)
	// Another program of this machine may listen at the same port.
	if resp, err := browser.Get(lured); err == nil {
		resp.Body.Close()
		if resp.Header.Get("Page") != "" {
			t.Error("the page was reached")
		}
	}
	if log := poll(t, r, state).LogTail; strings.Contains(log, "stole") {
		t.Errorf("it has the cookie: %s", log)
	}
	if u, _ := url.Parse(lured); len(jar.Cookies(u)) != 1 {
		t.Error("the browser would not have sent the cookie")
	}
}
