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

// Options configure a cluster. The zero value is a complete cluster in a
// temporary directory.
type Options struct {
	// Dir is the directory of the cluster: keys, data, logs, images. It must
	// not exist or be empty. The default is a new temporary directory.
	Dir string

	// ControlPlaneOnly omits containerd and the kubelet, which need root: pods
	// are scheduled on simulated nodes, but not run.
	ControlPlaneOnly bool

	// Simulated is the number of nodes that KWOK simulates; see
	// [Cluster.Simulate].
	Simulated int

	// WithoutJupyter omits the Jupyter image.
	WithoutJupyter bool

	// NodeGrace is how long a node may be silent before it is marked as not
	// ready; Kubernetes' own 50 s when 0. Nodes report every 10 s.
	NodeGrace time.Duration

	// Log is called with progress messages, unless it is nil.
	Log func(format string, args ...any)
}

// Cluster is a Kubernetes cluster.
type Cluster struct {
	// Kubeconfig is the path of an administrator's kubeconfig.
	Kubeconfig string

	// Node is the name of the node that runs pods; empty without one, and for
	// an existing cluster.
	Node string

	// Image is the Jupyter image of the cluster's node.
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

// Open returns the cluster of KUBECONFIG, or starts one. Stop does not affect
// the former.
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

// Prepare compiles the programs and builds the images, so that a start takes
// seconds. It fails without Debian's package jupyter-notebook.
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

// Start starts a cluster and returns when it is ready: the API server
// responds, the controllers work, the node accepts pods. The first start
// compiles Kubernetes, which takes minutes. ctx limits the start, not the
// lifetime of the cluster, which ends with Stop. A failed start leaves
// nothing.
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
	// Pods need the service account that the controllers create.
	return await(ctx, controllers, func(ctx context.Context) error {
		return c.api.Do(ctx, http.MethodGet, "/api/v1/namespaces/default/serviceaccounts/default", nil, nil)
	})
}

// together runs independent parts concurrently; the first failure cancels the
// others.
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

// Dir is the directory of the cluster; empty for an existing one.
func (c *Cluster) Dir() string { return c.dir }

// Client is an administrator's client of the API server; nil for an existing
// cluster.
func (c *Cluster) Client() *Client { return c.api }

// Stop stops the cluster and removes everything that it created: processes,
// mounts, network, files. Stopping twice is no error.
func (c *Cluster) Stop() error {
	if c.dir == "" {
		return nil
	}
	return Stop(c.dir)
}

func (c *Cluster) path(parts ...string) string {
	return filepath.Join(append([]string{c.dir}, parts...)...)
}
