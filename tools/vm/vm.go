package vm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

const (
	// inside is set in the machine.
	inside = "WEIR_IN_VM"
	limit  = 5 * time.Minute
)

// Inside reports whether the test runs in the machine.
func Inside() bool { return os.Getenv(inside) != "" }

// modules are the kernel's, below its directory of modules.
var modules = []string{"kernel/fs/xfs", "kernel/fs/quota",
	"kernel/lib", "kernel/crypto", "kernel/arch/x86/crypto", "kernel/drivers/block/loop.ko*"}

const initScript = `#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs -o size=80%% tmp /tmp
depmod
for module in loop xfs quota_v2; do modprobe $module; done
ip link set lo up
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/tmp %s=1
cd /tmp
/test -test.v -test.timeout 4m -test.run '%s'
echo "the test ended with $?"
poweroff -f
`

// Run runs a test of the calling program as root in a machine of its own, with the
// commands that it needs. It fails if that fails.
func Run(t *testing.T, commands ...string) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("the machine is one for amd64")
	}
	kernel, moduleDir := kernelFiles(t)
	root := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copyProgram(t, root, self, "/test")
	for _, command := range append(commands, "busybox") {
		path := programPath(t, command)
		copyProgram(t, root, path, filepath.Join("/bin", command))
	}
	for _, pattern := range modules {
		copyModules(t, moduleDir, pattern, root)
	}
	for _, dir := range []string{"proc", "sys", "dev", "tmp", "etc"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := fmt.Sprintf(initScript, inside, "^"+regexp.QuoteMeta(t.Name())+"$")
	if err := os.WriteFile(filepath.Join(root, "init"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if output := boot(t, kernel, pack(t, root)); !strings.Contains(output, "the test ended with 0") {
		t.Fatalf("in the virtual machine:\n%s", output)
	}
}

// kernelFiles are the kernel that tools/setup has unpacked and its modules.
func kernelFiles(t *testing.T) (kernel, moduleDir string) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	kernels, _ := filepath.Glob(filepath.Join(cache, "weir/kernel/boot/vmlinuz-*"))
	if len(kernels) == 0 {
		t.Skip("tools/setup unpacks a kernel only from Debian's packages")
	}
	version := strings.TrimPrefix(filepath.Base(kernels[0]), "vmlinuz-")
	return kernels[0], filepath.Join(cache, "weir/kernel/lib/modules", version)
}

func programPath(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/sbin", "/usr/sbin") {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	t.Fatalf("%s is missing: tools/setup test installs it", name)
	return ""
}

// library finds the files in the output of ldd.
var library = regexp.MustCompile(`(/\S+) \(0x`)

// copyProgram copies a program with its libraries.
func copyProgram(t *testing.T, root, path, to string) {
	t.Helper()
	copyFile(t, path, filepath.Join(root, to))
	list, _ := exec.CommandContext(t.Context(), "ldd", path).Output() // it fails for static programs
	for _, found := range library.FindAllSubmatch(list, -1) {
		lib := string(found[1])
		copyFile(t, lib, filepath.Join(root, lib))
	}
}

func copyModules(t *testing.T, moduleDir, pattern, root string) {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(moduleDir, pattern))
	for _, top := range found {
		err := filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				name, _ := filepath.Rel(moduleDir, path)
				copyFile(t, path, filepath.Join(root, "lib/modules", filepath.Base(moduleDir), name))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if _, err := os.Stat(to); err == nil {
		return
	}
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, content, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pack makes the file system that the kernel begins with.
func pack(t *testing.T, root string) string {
	t.Helper()
	image := filepath.Join(t.TempDir(), "initrd")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `find . | busybox cpio -o -H newc >"$0"`, image)
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return image
}

// boot runs a machine until it stops, and returns what it printed.
func boot(t *testing.T, kernel, image string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-accel", "tcg", "-m", "2048", "-nographic", "-no-reboot", "-nic", "none",
		"-kernel", kernel, "-initrd", image, "-append", "console=ttyS0 quiet panic=-1")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	began := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v after %s\n%s", err, time.Since(began), output.String())
	}
	return output.String()
}
