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

// containerdSocket is the socket of the cluster's containerd, by which Stop
// finds its shims.
const containerdSocket = "containerd.sock"

// containerdNamespace is the kubelet's namespace in containerd.
const containerdNamespace = "k8s.io"

// runcRoot is runc's directory for containers, in the cluster's directory.
const runcRoot = "runc"

// marker is the file that marks the directory of a cluster.
const marker = "weir-cluster"

// order is the order in which programs are stopped: a program before those
// that it would restart.
var order = []string{"kwok", "kubelet", "containerd", "kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"}

// Stop stops the cluster in dir and removes everything that it created, also
// after its starter was killed. It ends exactly the recorded processes and the
// containers below them. A missing directory is no error; one that is not a
// cluster's is. If something cannot be removed, the directory stays for a
// retry.
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

// endPrograms ends the recorded processes. Containers are removed after the
// kubelet, which would restart them, and before containerd.
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

// endContainers removes running containers with runc, which also removes
// cgroups, and ends the shims.
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

// endShims ends the shims of the cluster's containerd and all their
// descendants. Shims are subreapers, so no process of a container escapes.
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
		stat, err := readStat(fmt.Sprintf("/proc/%d", pid))
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

// isShim reports whether a process is a shim of the containerd at socket, by
// its command line.
func isShim(pid int, socket string) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := strings.Split(string(line), "\x00")
	return err == nil && strings.HasPrefix(filepath.Base(args[0]), "containerd-shim") && slices.Contains(args, socket)
}

// isCluster reports whether dir belongs to a cluster: nothing else may be
// removed.
func isCluster(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, marker))
	return err == nil && info.Mode().IsRegular()
}
