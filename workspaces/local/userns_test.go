package local

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

const subordinateUser = 700_000

// Root of a user namespace with subordinate IDs, which is an ordinary user of the machine,
// gives members users of their own as well.
func TestMembersInUserNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can set up the namespace without newuidmap")
	}
	maps := []syscall.SysProcIDMap{{ContainerID: 0, HostID: subordinateUser, Size: 1}, {ContainerID: testUser, HostID: subordinateUser + 1, Size: 1},
		{ContainerID: memberIDs, HostID: subordinateUser + 2, Size: 100}}
	cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run", "^(TestMembersShareNothingOfTheKernel|TestClosedDirectory|TestConformance|TestRefresh.*)$")
	cmd.Dir, cmd.Env = "/", append(os.Environ(), "TMPDIR="+openTempDir(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: maps, GidMappings: maps, GidMappingsEnableSetgroups: true, Credential: &syscall.Credential{}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// openTempDir is a directory in which the namespace's root can create files.
func openTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "userns")
	if err == nil {
		err = os.Chown(dir, subordinateUser, subordinateUser)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
