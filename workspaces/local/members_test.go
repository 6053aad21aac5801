package local

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"weir/workspaces/runtime"
)

// memberIDs are IDs that nobody has on this machine.
const memberIDs = 1_900_500_000

// memberSpec is a script in a workspace of a member.
func memberSpec(id, member int64, script string) runtime.Spec {
	spec := scriptSpec(id, script)
	spec.Member, spec.UID, spec.GID = member, memberIDs+member, memberIDs+1
	return spec
}

// kernelScript prints what a program gets of the kernel's resources that are counted or
// found by user. OTHER_PID is a process of
// somebody else.
const kernelScript = `exec python3 -c '
import ctypes, errno, os, platform, time
libc = ctypes.CDLL(None, use_errno=True)
add_key = {"x86_64": 248, "aarch64": 217}[platform.machine()]
def call(*a):
    r = libc.syscall(*a)
    return r if r >= 0 else "no:" + errno.errorcode[ctypes.get_errno()]
if "OTHER_PID" in os.environ:
    try:
        os.kill(int(os.environ["OTHER_PID"]), 9)
        print("kill done")
    except OSError as e:
        print("kill no:" + errno.errorcode[e.errno])
print("keys", *[call(add_key, b"user", b"mine", b"secret", 6, ring) for ring in (-3, -4)])
print("shared", sorted(os.listdir("/tmp") + os.listdir("/dev/shm")), len([p for p in os.listdir("/proc") if p.isdigit()]))
open("/tmp/mine", "w").close(); open("/dev/shm/mine", "w").close()
instances = 0
while libc.inotify_init() >= 0:
    instances += 1
print("inotify", instances, flush=True)
time.sleep(600)
'`

// A member who takes all that the kernel counts by user takes it from nobody else, and
// reaches no key and no process of others.
func TestMembersShareNothingOfTheKernel(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change users")
	}
	r := open(t, config(t.TempDir()))
	printed := func(spec runtime.Spec) (lines map[string]string, in *instance) {
		state := start(t, r, spec)
		var log string
		eventually(t, "all is printed", func() bool {
			log = poll(t, r, state).LogTail
			return strings.Contains(log, "inotify")
		})
		lines = map[string]string{}
		for line := range strings.Lines(log) {
			name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			lines[name] += rest + ";"
		}
		in, err := r.parseState(state)
		if err != nil {
			t.Fatal(err)
		}
		return lines, in
	}
	first, in := printed(memberSpec(1, 11, kernelScript))
	if first["keys"] != "no:EPERM no:EPERM;" { // /proc/keys and the limits of keys are by user
		t.Fatalf("the first has keys: %v", first)
	}
	spec := memberSpec(2, 12, kernelScript)
	spec.Env = map[string]string{"OTHER_PID": fmt.Sprint(in.sandboxStatus().Child)}
	second, _ := printed(spec)
	for name, want := range map[string]string{"kill": "no:ESRCH;", "shared": "[] 2;", "inotify": first["inotify"]} {
		if name == "inotify" && namespaced(t) {
			continue // counted for the owner of the namespace as well
		}
		if second[name] != want {
			t.Errorf("%s: %q, want %q", name, second[name], want)
		}
	}
	if in.exited() {
		t.Error("the first was killed")
	}
	if s := r.userOf(spec); int64(s.uid) != spec.UID || int64(s.gid) != spec.GID {
		t.Errorf("it runs as %+v", s)
	}
}

// Workspaces with shares under MPS have the same user.
func TestUserOfMPSShares(t *testing.T) {
	r := &Runtime{user: identity{uid: 5, gid: 5, drop: true}}
	spec := memberSpec(1, 11, "")
	spec.GPUs = []runtime.GPU{{Enforcement: "mps"}}
	if u := r.userOf(spec); u.uid != 5 || int64(u.gid) != spec.GID {
		t.Errorf("%+v", u)
	}
	spec.GPUs[0].Simulated = true
	if u := r.userOf(spec); int64(u.uid) != spec.UID {
		t.Errorf("%+v", u)
	}
	r.user.drop = false
	if u := r.userOf(spec); u != r.user {
		t.Errorf("without root: %+v", u)
	}
}

// namespaced reports whether this process is in a user namespace.
func namespaced(t *testing.T) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(b)), " ") != "0 0 4294967295"
}
