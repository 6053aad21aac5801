package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

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

	// NFSClient is a program that the node uses as /sbin/mount.nfs, for machines whose
	// kernel has no NFS client.
	NFSClient string

	// Log is called with progress messages, unless it is nil.
	Log func(format string, args ...any)
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
	return &Cluster{Kubeconfig: path, Image: cmp.Or(os.Getenv(ExternalImage), image.JupyterName)}, nil
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
	c := &Cluster{log: o.Log, grace: o.NodeGrace, nfsClient: o.NFSClient}
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
	parts, partsCtx := errgroup.WithContext(ctx)
	parts.Go(func() (err error) {
		controllers, err = c.startControlPlane(partsCtx)
		return err
	})
	parts.Go(func() (err error) {
		if !o.ControlPlaneOnly {
			containerd, err = c.startContainerd(partsCtx, !o.WithoutJupyter)
		}
		return err
	})
	if err := parts.Wait(); err != nil {
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

// Stop stops the cluster and removes everything that it created: processes,
// mounts, network, files. Stopping twice is no error.
func (c *Cluster) Stop() error {
	if c.dir == "" {
		return nil
	}
	return Stop(c.dir)
}

// prepare creates the keys, the kubeconfigs and the client.
func (c *Cluster) prepare() (err error) {
	if c.port, err = freePorts(); err != nil {
		return err
	}
	if c.keys, err = newKeys(c.path("keys")); err != nil {
		return err
	}
	local := []string{"127.0.0.1", "localhost"}
	for _, who := range []struct {
		file, name    string
		groups, hosts []string
	}{
		{"etcd", "etcd", nil, local},
		{"server", "kube-apiserver", []string{"system:masters"}, append(local, "kubernetes.default.svc", "10.96.0.1")},
		{"admin", "admin", []string{"system:masters"}, nil},
		{"controllers", "system:kube-controller-manager", nil, nil},
		{"scheduler", "system:kube-scheduler", nil, nil},
		{"kwok", "kwok", []string{"system:masters"}, local},
	} {
		if err := c.keys.issue(who.file, who.name, who.groups, who.hosts); err != nil {
			return err
		}
	}
	for _, file := range []string{"controllers", "scheduler", "kwok"} {
		if err := c.writeKubeconfig(c.path("keys", file+".kubeconfig"), file); err != nil {
			return err
		}
	}
	if err := c.writeKubeconfig(c.Kubeconfig, "admin"); err != nil {
		return err
	}
	c.api, err = newClient(c.Kubeconfig)
	return err
}

// checkPrograms checks at once that the machine has all system programs.
func checkPrograms(o Options) error {
	needs := [][2]string{{"etcd", "etcd-server"}}
	if !o.ControlPlaneOnly {
		if os.Geteuid() != 0 {
			return errors.New("a node that runs pods needs root (mounts, network, cgroups); without it only the control plane runs")
		}
		needs = append(needs, [][2]string{{"containerd", "containerd"}, {"runc", "runc"}, {"iptables", "iptables"},
			{"ip", "iproute2"}, {"nsenter", "util-linux"}, {cniPlugins + "/bridge", "containernetworking-plugins"}}...)
	}
	var missing []string
	for _, need := range needs {
		if findProgram(need[0]) == "" {
			missing = append(missing, need[1])
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("not on this machine: the Debian packages %s; “tools/setup cluster” installs them", strings.Join(missing, ", "))
	}
	return nil
}
