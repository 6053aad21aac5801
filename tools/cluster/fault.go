package cluster

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Names of the programs that support faults; see [Cluster.Kill].
const (
	Etcd        = "etcd"
	APIServer   = "kube-apiserver"
	Scheduler   = "kube-scheduler"
	Controllers = "kube-controller-manager"
	Kubelet     = "kubelet"
	KWOK        = "kwok"
)

// Kill ends one program by force, as a crash would. Its data and its ports
// stay for [Cluster.Restart]. A program that has ended already is no error.
func (c *Cluster) Kill(name string) error {
	p, err := c.find(name)
	if err != nil {
		return err
	}
	if err := p.record.end(); err != nil {
		return err
	}
	<-p.done // collected, too
	return nil
}

// Restart starts a killed program again. After etcd and the API server it
// returns when the API server is ready, if that runs.
func (c *Cluster) Restart(ctx context.Context, name string) error {
	p, err := c.find(name)
	if err != nil {
		return err
	}
	if p.record.alive() {
		return fmt.Errorf("%s runs: kill it first", name)
	}
	if p, err = c.spawn(name, p.program, p.args...); err != nil {
		return err
	}
	if name != Etcd && name != APIServer {
		return nil
	}
	if server, err := c.find(APIServer); err != nil || !server.record.alive() {
		return err
	}
	return await(ctx, p, c.serverReady)
}

// Pause suspends a program: once it returns, clients get no responses.
func (c *Cluster) Pause(name string) error {
	p, err := c.signal(name, syscall.SIGSTOP)
	if err != nil {
		return err
	}
	return p.record.stopped(time.Minute)
}

// Continue resumes a paused program.
func (c *Cluster) Continue(name string) error {
	_, err := c.signal(name, syscall.SIGCONT)
	return err
}

func (c *Cluster) signal(name string, s syscall.Signal) (*running, error) {
	p, err := c.find(name)
	if err != nil {
		return nil, err
	}
	if !p.record.alive() {
		return nil, fmt.Errorf("%s has ended", name)
	}
	return p, p.record.signal(s)
}

func (c *Cluster) find(name string) (*running, error) {
	if c.dir == "" {
		return nil, errors.New("faults can be done only to a cluster that was started here")
	}
	if name == "containerd" {
		return nil, errors.New("containerd cannot be restarted alone: the kubelet lives in its view of the file system")
	}
	p, ok := c.started.Load(name)
	if !ok {
		return nil, fmt.Errorf("the cluster has no program %q that this process started", name)
	}
	return p.(*running), nil
}
