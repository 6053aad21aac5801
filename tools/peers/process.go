package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// How long a server may take to start and to end.
const (
	starting = time.Minute
	ending   = 20 * time.Second
)

// processes are the servers of a run. All of them lie in one directory.
type processes struct {
	dir     string
	cpus    string // of the servers, as taskset writes them; empty: all
	running []*process
}

type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when it has ended
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// start starts a server. It gets a process group of its own, so that Ctrl-C does
// not reach it: stopAll ends servers in the right order.
func (ps *processes) start(name string, env []string, argv ...string) (*process, error) {
	if ps.cpus != "" {
		argv = append([]string{"taskset", "--cpu-list", ps.cpus}, argv...)
	}
	p := &process{name: name, log: filepath.Join(ps.dir, name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = ps.dir, log, log
	p.cmd.Env = append(withoutSettings(os.Environ()), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // awaitHTTP reports a server that ends too early
		close(p.done)
	}()
	ps.running = append(ps.running, p)
	return p, nil
}

// withoutSettings drops the settings of a Weir that the user may run beside.
func withoutSettings(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "WEIR_") })
}

// awaitHTTP waits until a server answers at a URL with a status.
func (p *process) awaitHTTP(ctx context.Context, url string, status int) error {
	client := &http.Client{Timeout: 2 * time.Second}
	return eventually(ctx, starting, func() error {
		select {
		case <-p.done:
			return final{fmt.Errorf("%s ended: %s\n%s", p.name, p.cmd.ProcessState, p.logTail())}
		default:
		}
		res, err := client.Get(url)
		if err != nil {
			return fmt.Errorf("%s does not answer: %w\n%s", p.name, err, p.logTail())
		}
		defer res.Body.Close()
		if res.StatusCode != status {
			return fmt.Errorf("%s: %s", url, res.Status)
		}
		return nil
	})
}

func (p *process) logTail() string {
	text, _ := os.ReadFile(p.log)
	return string(text[max(0, len(text)-2000):])
}

// stopAll ends the servers, the last one first, then what they have left: a
// process is one of this run's if its command line names the run's directory.
func (ps *processes) stopAll() error {
	var errs []error
	for _, p := range slices.Backward(ps.running) {
		errs = append(errs, p.stop())
	}
	for _, pid := range processesOf(ps.dir) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return errors.Join(errs...)
}

func (p *process) stop() error {
	_ = syscall.Kill(p.pid(), syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-time.After(ending):
		_ = syscall.Kill(-p.pid(), syscall.SIGKILL)
		<-p.done
		return fmt.Errorf("%s did not end within %s", p.name, ending)
	}
}

func processesOf(dir string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		command, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && bytes.Contains(command, []byte(dir+"/")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// divideCPUs gives half of the processors to the servers and the rest to this
// process, so that the load generator takes no time from what it measures. It
// returns both as taskset writes them.
func divideCPUs() (servers, generator string, err error) {
	n := runtime.NumCPU()
	if _, err := exec.LookPath("taskset"); err != nil || n < 2 {
		return "", "", nil
	}
	out, err := exec.Command("taskset", "--cpu-list", "--pid", strconv.Itoa(os.Getpid())).Output()
	if err != nil {
		return "", "", err
	}
	cpus, err := parseCPUs(string(out[bytes.LastIndexByte(out, ':')+1:]))
	if err != nil {
		return "", "", err
	}
	half := len(cpus) / 2
	generator, servers = strings.Join(cpus[:half], ","), strings.Join(cpus[half:], ",")
	runtime.GOMAXPROCS(half)
	return servers, generator, exec.Command("taskset", "--all-tasks", "--cpu-list", "--pid", generator, strconv.Itoa(os.Getpid())).Run()
}

// parseCPUs expands a list such as "0-3,8".
func parseCPUs(list string) (cpus []string, err error) {
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		if err != nil {
			return nil, err
		}
		to, err := strconv.Atoi(last)
		if err != nil {
			return nil, err
		}
		for cpu := from; cpu <= to; cpu++ {
			cpus = append(cpus, strconv.Itoa(cpu))
		}
	}
	return cpus, nil
}

// freePorts returns loopback ports that nothing uses.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // after the last one, so that all differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// final is an error that time does not mend.
type final struct{ error }

// eventually repeats try until it succeeds.
func eventually(ctx context.Context, within time.Duration, try func() error) error {
	return eventuallyEvery(ctx, 50*time.Millisecond, within, try)
}

// eventuallyEvery repeats try at a period until it succeeds.
func eventuallyEvery(ctx context.Context, period, within time.Duration, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		err := try()
		if err == nil || errors.As(err, new(final)) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}
