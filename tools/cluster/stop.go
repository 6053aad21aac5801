package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// runcRoot is where runc keeps its containers, below the cluster's directory.
const runcRoot = "runc"

// order is that in which programs end: whoever would start something again
// before it.
var order = []string{"kwok", "kubelet", "containerd", "kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"}

// Stop ends the cluster in dir and removes all that it made, also when the
// one who started it was killed meanwhile. It ends exactly the processes that
// are recorded there and the containers below them. A directory that is not
// there is no error; one that is not a cluster's is. When something cannot be
// removed, the directory stays for another try.
func Stop(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	if !isCluster(dir) {
		return fmt.Errorf("%s is not the directory of a cluster: nothing is removed", dir)
	}
	for _, step := range []func(string) error{endPrograms, removeNetwork, refuseMounts} {
		if err := step(dir); err != nil {
			return fmt.Errorf("stopping the cluster in %s: %w", dir, err)
		}
	}
	return os.RemoveAll(dir)
}

// endPrograms ends the recorded processes. The containers go between the
// kubelet, which would start them again, and containerd, which lets them be.
func endPrograms(dir string) error {
	for _, name := range order {
		if name == "containerd" {
			if err := endContainers(dir); err != nil {
				return err
			}
		}
		text, err := os.ReadFile(filepath.Join(dir, "processes", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if r, ok := parseRecord(string(text)); ok {
			if err := r.end(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return endShims(dir) // those that containerd started while it ended
}

// endContainers lets runc, which knows the cgroups too, remove what runs, and
// ends the shims.
func endContainers(dir string) error {
	root := filepath.Join(dir, runcRoot, containerdNamespace)
	containers, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, c := range containers {
		if err := command("runc", "--root", root, "delete", "--force", c.Name()); err != nil {
			return err
		}
	}
	return endShims(dir)
}

// endShims ends the shims of the cluster's containerd with all below them.
// A shim takes over what loses its parent, so nothing of a container escapes.
func endShims(dir string) error {
	shims, below, err := shimsOf(filepath.Join(dir, containerdSocket))
	for _, r := range append(below, shims...) {
		err = errors.Join(err, r.end())
	}
	return err
}

// shimsOf returns the shims of the containerd at socket, and their
// descendants.
func shimsOf(socket string) (shims, below []record, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, nil, err
	}
	children := map[int][]int{}
	var todo []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := readStat(pid)
		if err != nil {
			continue // it has ended meanwhile
		}
		children[stat.parent] = append(children[stat.parent], pid)
		if r, ok := recordOf(pid); ok && isShim(pid, socket) {
			shims = append(shims, r)
			todo = append(todo, pid)
		}
	}
	for len(todo) > 0 {
		next := children[todo[0]]
		todo = append(todo[1:], next...)
		for _, pid := range next {
			if r, ok := recordOf(pid); ok {
				below = append(below, r)
			}
		}
	}
	return shims, below, nil
}

// isShim tells by its command line whether a process is a shim of the
// containerd at socket.
func isShim(pid int, socket string) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := strings.Split(string(line), "\x00")
	return err == nil && strings.HasPrefix(filepath.Base(args[0]), "containerd-shim") && slices.Contains(args, socket)
}
