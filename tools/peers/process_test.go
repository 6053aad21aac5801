package main

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

var errNotYet = errors.New("not yet")

// Whatever a server has left ends with the run, but nothing else does.
func TestStopAllLeavesNothing(t *testing.T) {
	ps := &processes{dir: t.TempDir()}
	other := exec.Command("sleep", "600")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	const detach = `setsid sh -c 'sleep 600; true' "$1/left" & exec sleep 600`
	p, err := ps.start("server", nil, "sh", "-c", detach, "sh", ps.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := eventually(t.Context(), starting, func() error {
		if len(processesOf(ps.dir)) == 0 {
			return errNotYet
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := ps.stopAll(); err != nil {
		t.Error(err)
	}
	<-p.done
	if err := eventually(t.Context(), ending, func() error {
		if len(processesOf(ps.dir)) > 0 {
			return errNotYet
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("another process was ended: %v", err)
	}
}

// A server that ends at once is told with what it printed.
func TestServerThatEnds(t *testing.T) {
	ps := &processes{dir: t.TempDir()}
	p, err := ps.start("server", []string{"X=because"}, "sh", "-c", "echo $X >&2; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	err = p.awaitHTTP(t.Context(), "http://127.0.0.1:1/", 200)
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "because") {
		t.Error(err)
	}
}

func TestFreePortsDiffer(t *testing.T) {
	ports, err := freePorts(5)
	slices.Sort(ports)
	if err != nil || len(slices.Compact(ports)) != 5 {
		t.Error(ports, err)
	}
}
