package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	temporary = "weir-cluster-" // prefix of temporary directories

	// longest is the maximum length of the directory's path in bytes: Unix
	// socket addresses have at most 107.
	longest = 80
)

// claim reserves dir for a cluster, or a new temporary directory when it is
// empty. Only a temporary one ends with this process.
func claim(dir string) (string, error) {
	var err error
	owner := ""
	if dir == "" {
		if err := Sweep(); err != nil {
			return "", err
		}
		owner = self()
		dir, err = os.MkdirTemp("", temporary)
	} else if dir, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return "", err
	}
	// Two paths to one directory would be two clusters.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	if len(dir) > longest {
		return "", fmt.Errorf("the path %s has %d characters; a cluster's may have %d, because sockets lie in it", dir, len(dir), longest)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("%s is not empty; a cluster that is there ends with: make cluster-down", dir)
	}
	f, err := os.OpenFile(filepath.Join(dir, marker), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(owner)
	return dir, errors.Join(err, f.Close())
}

// Running reports whether all programs of the cluster in dir run, and returns
// its kubeconfig.
func Running(dir string) (kubeconfig string, ok bool) {
	if !isCluster(dir) {
		return "", false
	}
	records, err := filepath.Glob(filepath.Join(dir, "processes", "*"))
	for _, path := range records {
		text, readErr := os.ReadFile(path)
		r, valid := parseRecord(string(text))
		if readErr != nil || !valid || !r.alive() {
			return "", false
		}
	}
	kubeconfig = filepath.Join(dir, "kubeconfig")
	return kubeconfig, err == nil && len(records) > 0
}

// Sweep stops the temporary clusters of processes that ended without stopping
// them, as killed tests do.
func Sweep() error {
	found, err := filepath.Glob(filepath.Join(os.TempDir(), temporary+"*"))
	for _, dir := range found {
		owner, readErr := os.ReadFile(filepath.Join(dir, marker))
		if readErr != nil { // of another user, or just being created or removed
			continue
		}
		if p, ok := parseRecord(string(owner)); ok && !p.alive() {
			err = errors.Join(err, Stop(dir))
		}
	}
	return err
}
