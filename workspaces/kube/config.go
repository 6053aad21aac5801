package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Who gives a container its GPUs.
const (
	// BackendWeir takes the devices that the pool chose: they are shown by
	// NVIDIA's container runtime, and counted as weir.dev/gpu-cores, which
	// [Runtime.Advertise] keeps on the nodes.
	BackendWeir = "weir"
	// BackendNVIDIA asks NVIDIA's device plugin for whole GPUs; it chooses
	// among those of the node.
	BackendNVIDIA = "nvidia"
	// BackendHAMi asks HAMi for shares of the devices that the pool chose.
	BackendHAMi = "hami"
)

// Config tells a Runtime which cluster it uses, and how.
type Config struct {
	Rest       *rest.Config // the API server; nil: as Kubeconfig says
	Kubeconfig string       // a file; empty: as the pod that we run in is told

	Instance string // tells the pools of one cluster apart; "weir" when empty
	Prefix   string // of the projects' namespaces; "weir-p-" when empty

	// Storage is what the cluster mounts, and SharedRoot the same directory
	// as this process sees it: sources of mounts lie below it.
	Storage    Storage
	SharedRoot string

	Image      string            // for environments that name none
	PullPolicy corev1.PullPolicy // the cluster's own rule when empty
	UID, GID   int64             // of the notebooks; 1000 when 0
	Scratch    int64             // MiB that a workspace may write outside the shared directories; 0 is no limit
	CPUShare   int64             // percent of its CPU limit that a workspace reserves; 25 when 0
	Grace      time.Duration     // for a notebook to end in; 5 s when 0
	ProbePath  string            // where a started notebook answers without a token; Jupyter's when empty, any TCP answer when "-"

	GPUBackend   string // a Backend constant; BackendWeir when empty
	RuntimeClass string // of pods that see real GPUs, such as "nvidia"
	MPSDir       string // on every node, a directory for each GPU that an MPS daemon serves: pipe and shm; see workspaces/local
	Tolerations  []corev1.Toleration

	Portal  Peer     // who alone may reach notebooks
	Egress  []Egress // where notebooks may connect to, beside names (DNS) and the portal
	Ingress Ingress

	// Quota says what a project may take of the cluster; nil: the pool's own
	// quotas are the only ones.
	Quota func(ctx context.Context, project int64) (Quota, error)

	Logger *slog.Logger     // slog.Default when nil
	Clock  func() time.Time // time.Now when nil
}

// Storage is where the shared directories are: on an NFS server, or in a
// directory that every node has.
type Storage struct {
	NFSServer    string
	NFSPath      string
	MountOptions []string // of NFS; version 4.2 when empty
	HostPath     string   // for a cluster of one machine
}

// Peer is a party to a connection: pods by the labels of their namespace and
// their own, addresses, or both.
type Peer struct {
	NamespaceLabels map[string]string
	PodLabels       map[string]string
	CIDRs           []string
	Port            int32 // where notebooks reach it; 0: they may not
}

// Egress permits connections to a network.
type Egress struct {
	CIDR   string
	Except []string // networks inside it
	Ports  []int32  // TCP; all of every protocol when empty
}

// Ingress gives each workspace a host, ws-{id}.{Domain}, that leads to the
// portal: the portal's gate stands before every notebook. Without a Domain
// there is none, and a wildcard host of the portal's own does the same.
type Ingress struct {
	Class       string
	Domain      string
	TLSSecret   string // in the project's namespace; empty: none
	Annotations map[string]string
	Service     string // the portal's, as a DNS name
	Port        int32
}

// Quota bounds what a project's namespace may take; 0 is no bound.
type Quota struct {
	CPU        int64 // milli
	Memory     int64 // MiB
	GPUCores   int64
	Workspaces int64
}

// withDefaults fills in what was left open, and says of the rest all that
// does not fit.
func (c Config) withDefaults() (Config, error) {
	set := func(at *string, value string) {
		if *at == "" {
			*at = value
		}
	}
	set(&c.Instance, "weir")
	set(&c.Prefix, "weir-p-")
	set(&c.GPUBackend, BackendWeir)
	// Jupyter answers this without a token, and does not count it as activity.
	set(&c.ProbePath, "/api?no_track_activity=1")
	number := func(at *int64, value int64) {
		if *at == 0 {
			*at = value
		}
	}
	number(&c.UID, 1000)
	number(&c.GID, c.UID)
	number(&c.CPUShare, 25)
	number((*int64)(&c.Grace), int64(5*time.Second))
	if len(c.Storage.MountOptions) == 0 {
		c.Storage.MountOptions = []string{"nfsvers=4.2", "hard", "noatime"}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return c, c.check()
}

func (c Config) check() error {
	var wrong []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	nfs, host := c.Storage.NFSServer != "", c.Storage.HostPath != ""
	need(nfs != host, "the cluster's storage is either an NFS server or a directory of every node: set one of them")
	need(!nfs || path.IsAbs(c.Storage.NFSPath), "the NFS path %q is not absolute", c.Storage.NFSPath)
	need(!host || path.IsAbs(c.Storage.HostPath), "the storage directory %q is not absolute", c.Storage.HostPath)
	need(path.IsAbs(c.SharedRoot), "the shared root %q is not an absolute path", c.SharedRoot)
	need(c.UID > 0 && c.GID > 0, "notebooks must not run as root: user %d, group %d", c.UID, c.GID)
	need(c.CPUShare > 0 && c.CPUShare <= 100, "the CPU share to reserve is %d percent; it lies between 1 and 100", c.CPUShare)
	need(c.GPUBackend == BackendWeir || c.GPUBackend == BackendNVIDIA || c.GPUBackend == BackendHAMi,
		"the GPU back end is %q; it is one of %s, %s and %s", c.GPUBackend, BackendWeir, BackendNVIDIA, BackendHAMi)
	need(c.MPSDir == "" || path.IsAbs(c.MPSDir), "the MPS directory %q is not absolute", c.MPSDir)
	need(len(c.Portal.PodLabels)+len(c.Portal.NamespaceLabels)+len(c.Portal.CIDRs) > 0,
		"nobody could reach a notebook: say by labels or addresses where the portal is")
	need(c.Ingress.Domain == "" || c.Ingress.Service != "" && c.Ingress.Port > 0,
		"the hosts of %s lead nowhere: name the portal's service and its port", c.Ingress.Domain)
	return errors.Join(wrong...)
}

// restConfig finds the API server.
func (c Config) restConfig() (*rest.Config, error) {
	found := c.Rest
	if found == nil {
		var err error
		if found, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
			return nil, fmt.Errorf("the cluster's address is not known: %w", err)
		}
	}
	found = rest.CopyConfig(found)
	found.UserAgent = "weir"
	// The pool starts many at once; the API server's own fairness is the limit.
	found.QPS = -1
	return found, nil
}
