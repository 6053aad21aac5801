package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"weir/tools/cluster/image"
)

// Options say what a cluster is made of. The zero value is a whole cluster
// in a temporary directory.
type Options struct {
	// Dir holds everything of the cluster: keys, data, logs, images. It must
	// not exist or be empty. Empty, a new one below the temporary directory.
	Dir string

	// ControlPlaneOnly leaves out containerd and the kubelet, which need
	// root: pods are scheduled then, on simulated nodes, but nothing runs.
	ControlPlaneOnly bool

	// Simulated is the number of nodes that KWOK plays; see [Cluster.Simulate].
	Simulated int

	// WithoutJupyter leaves the Jupyter image out of the node.
	WithoutJupyter bool

	// NodeGrace is how long a node may be silent before the cluster says that
	// it does not answer; Kubernetes' own 50 s when 0. Nodes report every 10 s.
	NodeGrace time.Duration

	// Log is told what takes time; nil tells nobody.
	Log func(format string, args ...any)
}

// Cluster is a Kubernetes to work with.
type Cluster struct {
	// Kubeconfig is the path of a file with the rights of an administrator.
	Kubeconfig string

	// Node is the name of the node that runs pods; empty without one, and
	// for a cluster that was there before.
	Node string

	// Image is the Jupyter image that the cluster's node has.
	Image string

	dir  string // empty when the cluster is not ours
	bin  string // the programs of Kubernetes
	log  func(format string, args ...any)
	keys keys
	port ports
	net  network
	api  *Client

	started sync.Map // of *running, by name
	grace   time.Duration
}

// ExternalImage is the environment variable that names the Jupyter image of
// an existing cluster.
const ExternalImage = "WEIR_CLUSTER_IMAGE"

// Open returns the cluster that KUBECONFIG names, or starts one. Stop leaves
// the former as it is.
func Open(ctx context.Context, o Options) (*Cluster, error) {
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		return Start(ctx, o)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("KUBECONFIG must name one existing file: %w", err)
	}
	name := os.Getenv(ExternalImage)
	if name == "" {
		name = image.JupyterName
	}
	return &Cluster{Kubeconfig: path, Image: name}, nil
}

// Prepare compiles what Start would, and makes the images, so that a start
// takes seconds. Without jupyter-notebook's Debian package it fails.
func Prepare(ctx context.Context, log func(format string, args ...any)) error {
	if _, err := programs(ctx, true, log); err != nil {
		return err
	}
	cache, err := cacheDir("images")
	if err != nil {
		return err
	}
	if _, err := image.Pause(ctx, cache); err != nil {
		return err
	}
	_, err = image.Jupyter(ctx, cache)
	return err
}

// Start brings up a cluster and returns when it is ready: the API server
// answers, the controllers work, the node takes pods. The first time it
// compiles Kubernetes, which takes minutes. ctx bounds the start, not the
// cluster's life: that ends with Stop. A start that fails leaves nothing.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if err := checkPrograms(o); err != nil {
		return nil, err
	}
	c := &Cluster{log: o.Log, grace: o.NodeGrace}
	if c.log == nil {
		c.log = func(string, ...any) {}
	}
	var err error
	if c.bin, err = programs(ctx, o.Simulated > 0, c.log); err != nil {
		return nil, err
	}
	if c.dir, err = claim(o.Dir); err != nil {
		return nil, err
	}
	c.Kubeconfig = filepath.Join(c.dir, "kubeconfig")
	if err := c.start(ctx, o); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, o Options) error {
	if err := c.prepare(); err != nil {
		return err
	}
	var (
		controllers *running
		containerd  *running
	)
	if err := together(ctx,
		func(ctx context.Context) (err error) {
			controllers, err = c.startControlPlane(ctx)
			return err
		},
		func(ctx context.Context) (err error) {
			if !o.ControlPlaneOnly {
				containerd, err = c.startContainerd(ctx, !o.WithoutJupyter)
			}
			return err
		}); err != nil {
		return err
	}
	if containerd != nil {
		if err := c.startKubelet(ctx, containerd); err != nil {
			return err
		}
	}
	if o.Simulated > 0 {
		if err := c.Simulate(ctx, o.Simulated); err != nil {
			return err
		}
	}
	// Pods need the account that the controllers make.
	return await(ctx, controllers, func(ctx context.Context) error {
		return c.api.Do(ctx, http.MethodGet, "/api/v1/namespaces/default/serviceaccounts/default", nil, nil)
	})
}

// together runs what is independent; the first failure cancels the others.
func together(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, part := range parts {
		all.Go(func() {
			if err := part(ctx); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// Dir is where everything of the cluster lies; empty for an existing one.
func (c *Cluster) Dir() string { return c.dir }

// Client speaks with the API server as an administrator; nil for an existing
// cluster.
func (c *Cluster) Client() *Client { return c.api }

// Stop ends the cluster and removes all that it made: processes, mounts,
// network, files. Stopping twice is no error.
func (c *Cluster) Stop() error {
	if c.dir == "" {
		return nil
	}
	return Stop(c.dir)
}

func (c *Cluster) path(parts ...string) string {
	return filepath.Join(append([]string{c.dir}, parts...)...)
}
