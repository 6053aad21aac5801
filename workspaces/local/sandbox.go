package local

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/workspaces/runtime"
)

// Names inside the sandbox.
const (
	innerUser  = runtime.NotebookUser
	innerID    = "1000"
	innerHome  = runtime.NotebookHome
	innerRun   = "/run/weir" // the instance's shared directory
	innerXDG   = "/run/user" // private, in memory
	socketName = "jupyter.sock"
)

// hostEtc are the parts of /etc that programs need and that contain no secrets.
var hostEtc = []string{
	"ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust", "ca-certificates", "crypto-policies",
	"alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
	"resolv.conf", "nsswitch.conf", "gai.conf", "host.conf", "protocols", "services",
	"localtime", "timezone", "locale.alias", "fonts", "mime.types", "magic", "magic.mime",
	"jupyter", "ipython", "python3", "python3.9", "python3.10", "python3.11", "python3.12", "python3.13", "python3.14",
	"pip.conf", "OpenCL", "vulkan", "glvnd", "bash.bashrc", "inputrc", "terminfo", "os-release",
}

// identity is the user of the sandbox on the host.
type identity struct {
	uid, gid uint32
	drop     bool // this process is root and changes to it
}

// bubblewrap is the installed program and its features.
type bubblewrap struct {
	path          string
	disableUserns bool
}

// sandbox collects the arguments of bubblewrap. Most of them are passed in a file,
// because command lines are public and limited in length.
type sandbox struct {
	tool   bubblewrap
	user   identity
	args   []string
	files  []*os.File     // inherited by bubblewrap, from descriptor firstFile on
	staged []stagedSource // mounted through the stage
	err    error          // the first one
}

// Descriptors that the started process inherits.
const (
	goFD      = 3
	statusFD  = 4
	argsFD    = 5
	firstFile = 6
)

func newSandbox(tool bubblewrap, user identity) *sandbox {
	s := &sandbox{tool: tool, user: user}
	s.add("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--uid", innerID, "--gid", innerID, "--new-session", "--clearenv")
	if tool.disableUserns {
		s.add("--disable-userns")
	}
	return s
}

func (s *sandbox) add(args ...string) { s.args = append(s.args, args...) }

func (s *sandbox) fail(err error) { s.err = cmp.Or(s.err, err) }

func (s *sandbox) setenv(name, value string) {
	if strings.ContainsRune(name+value, 0) || name == "" || strings.Contains(name, "=") {
		s.fail(fmt.Errorf("the variable %q cannot be set", name))
		return
	}
	s.add("--setenv", name, value)
}

// bind mounts a file or directory of the host.
func (s *sandbox) bind(source, target string, readOnly bool) {
	if strings.ContainsRune(source+target, 0) {
		s.fail(fmt.Errorf("the path %q cannot be mounted", target))
		return
	}
	option := "--bind"
	if readOnly {
		option = "--ro-bind"
	}
	if canStage() {
		s.staged = append(s.staged, stagedSource{path: source})
		source = stagePath(len(s.staged) - 1)
	}
	s.add(option, source, target)
}

// share mounts a shared directory. Users can write in directories above it, so its
// source is opened without symbolic links and mounted by its handle.
func (s *sandbox) share(m models.Mount) {
	if canStage() {
		s.bind(m.Source, m.Target, m.ReadOnly)
		s.staged[len(s.staged)-1].noLinks = true
		return
	}
	f, err := openSource(stagedSource{path: m.Source, noLinks: true})
	if err != nil {
		s.fail(err)
		return
	}
	option := "--bind-fd"
	if m.ReadOnly {
		option = "--ro-bind-fd"
	}
	s.add(option, s.inherit(f), m.Target)
}

// inherit passes a file on to bubblewrap, and returns its descriptor there.
func (s *sandbox) inherit(f *os.File) string {
	s.files = append(s.files, f)
	return strconv.Itoa(firstFile + len(s.files) - 1)
}

// data creates a read-only file in the sandbox.
func (s *sandbox) data(target, content string) {
	f, err := memoryFile(target, content)
	if err != nil {
		s.fail(err)
		return
	}
	s.add("--perms", "0644", "--ro-bind-data", s.inherit(f), target)
}

func memoryFile(name, content string) (*os.File, error) {
	fd, err := unix.MemfdCreate(filepath.Base(name), unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.WriteAt([]byte(content), 0); err != nil { // which leaves the offset at the beginning
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// system mounts an operating system: the host's programs read-only, the needed
// parts of /etc, and everything else empty and private. tmpMiB and shmMiB limit
// /tmp and /dev/shm unless they are 0.
func (s *sandbox) system(tmpMiB, shmMiB int64) {
	s.add("--ro-bind", "/usr", "/usr")
	for _, dir := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		if link, err := os.Readlink("/" + dir); err == nil {
			s.add("--symlink", strings.TrimPrefix(link, "/"), "/"+dir)
		} else {
			s.add("--ro-bind-try", "/"+dir, "/"+dir)
		}
	}
	for _, name := range hostEtc {
		s.add("--ro-bind-try", "/etc/"+name, "/etc/"+name)
	}
	s.data("/etc/passwd", innerUser+":x:"+innerID+":"+innerID+"::"+innerHome+":/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n")
	s.data("/etc/group", innerUser+":x:"+innerID+":\nnogroup:x:65534:\n")
	s.add("--proc", "/proc", "--dev", "/dev", "--ro-bind-try", "/sys/devices/system", "/sys/devices/system")
	s.temporary(tmpMiB)
	s.tmpfs("/dev/shm", "1777", shmMiB)
	s.tmpfs(innerXDG, "0700", 64)
}

// temporary makes /tmp. What is moved from there to a shared directory keeps its
// permissions, so that the umask has no effect in /tmp either.
func (s *sandbox) temporary(mib int64) {
	if !canStage() {
		s.tmpfs("/tmp", "1777", mib)
		return
	}
	s.staged = append(s.staged, stagedSource{tmpfs: true, mib: mib})
	s.add("--bind", stagePath(len(s.staged)-1), "/tmp")
}

func (s *sandbox) tmpfs(target, mode string, mib int64) {
	s.add("--perms", mode)
	if mib > 0 {
		s.add("--size", strconv.FormatInt(mib<<20, 10))
	}
	s.add("--tmpfs", target)
}

// wrapper waits for one line on the gate. If the server dies before it has recorded
// the process, the gate is closed and the wrapper exits without running anything. The
// umask lets the group of the project use what is created where the file system has no
// ACLs.
const wrapper = `umask 007; read -r go <&3 || exit 1; exec 3<&-; exec "$@"`

// command returns the process that becomes the sandbox. m marks it.
func (s *sandbox) command(m mark, gate, status *os.File, argv []string) (*exec.Cmd, error) {
	if s.err != nil {
		return nil, s.err
	}
	if len(argv) == 0 {
		return nil, errors.New("there is no command to run")
	}
	s.add("--json-status-fd", strconv.Itoa(statusFD), "--remount-ro", "/")
	args, err := memoryFile("args", strings.Join(s.args, "\x00")+"\x00")
	if err != nil {
		return nil, err
	}
	s.files = append(s.files, args)
	files := append([]*os.File{gate, status, args}, s.files[:len(s.files)-1]...)
	outer := append([]string{"-c", wrapper, "weir", s.tool.path, "--args", strconv.Itoa(argsFD)}, m.args()...)
	cmd := exec.Command("/bin/sh", append(append(outer, "--"), argv...)...)
	cmd.Dir = "/"
	cmd.Env = []string{}
	cmd.ExtraFiles = files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if s.user.drop {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: s.user.uid, Gid: s.user.gid}
	}
	return cmd, nil
}

// start starts the process with a session keyring of its own: it must not share that of
// the portal with other workspaces.
func (s *sandbox) start(cmd *exec.Cmd) error {
	defer searchAgain()
	return onSpareThread(func() error {
		if _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); err != nil && !errors.Is(err, unix.ENOSYS) &&
			!errors.Is(err, unix.EPERM) {
			return fmt.Errorf("session keyring: %w", err)
		}
		if len(s.staged) > 0 {
			if err := stageSources(s.staged); err != nil {
				return err
			}
		}
		return cmd.Start()
	})
}

func (s *sandbox) close() {
	for _, f := range s.files {
		f.Close()
	}
}
