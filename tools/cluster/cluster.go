package cluster

import (
	"path/filepath"
	"sync"
	"time"
)

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

	nfsClient string
}

// Dir is the directory of the cluster; empty for an existing one.
func (c *Cluster) Dir() string { return c.dir }

// Client is an administrator's client of the API server; nil for an existing
// cluster.
func (c *Cluster) Client() *Client { return c.api }

func (c *Cluster) path(parts ...string) string {
	return filepath.Join(append([]string{c.dir}, parts...)...)
}

func (c *Cluster) program(name string) string { return filepath.Join(c.bin, name) }
