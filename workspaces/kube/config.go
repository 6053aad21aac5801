package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"weir/workspaces/runtime"
)

// Back ends that assign GPUs to containers.
const (
	// BackendWeir assigns the devices that the pool chose, through NVIDIA's
	// container runtime. The cluster counts weir.dev/gpu-cores; see
	// [Runtime.Advertise].
	BackendWeir = "weir"
	// BackendNVIDIA requests whole GPUs of NVIDIA's device plugin, which chooses
	// among those of the node.
	BackendNVIDIA = "nvidia"
	// BackendHAMi requests shares of HAMi, of the devices that the pool chose.
	BackendHAMi = "hami"
)

// Config configures a Runtime.
type Config struct {
	Rest       *rest.Config // the API server; nil: that of Kubeconfig
	Kubeconfig string       // a file; empty: the service account of this process's pod

	Instance string // distinguishes several installations in one cluster; "weir" when empty
	Prefix   string // of the projects' namespaces; "weir-p-" when empty
	Owner    runtime.Owner

	// Storage is what the cluster mounts, and SharedRoot the same directory in
	// this process: sources of mounts are below it.
	Storage    Storage
	SharedRoot string
	// Directories returns the directories below SharedRoot that the pods of a project
	// can mount. Each is a volume that shows nothing else.
	Directories func(project int64) []Directory
	EmptyDir    string // below SharedRoot: a mount of it hides what is there

	Image      string            // of environments that specify none
	PullPolicy corev1.PullPolicy // the cluster's default when empty
	UID, GID   int64             // of notebooks without their own; 1000 when 0
	Scratch    int64             // MiB that a workspace may write outside the shared directories; 0 is no limit
	CPUShare   int64             // percent of its CPU limit that a workspace reserves; 25 when 0
	Grace      time.Duration     // grace period of a notebook; 5 s when 0
	ProbePath  string            // path of the startup probe; Jupyter's when empty, a TCP probe when "-"

	GPUBackend   string // a Backend constant; BackendWeir when empty
	RuntimeClass string // of pods that see real GPUs, such as "nvidia"
	MPSDir       string // on every node; see MPSDir of workspaces/local
	Tolerations  []corev1.Toleration

	Portal  Peer     // the only clients of notebooks
	Egress  []Egress // networks that notebooks may connect to, in addition to DNS and the portal
	Ingress Ingress

	// Quota returns the quota of a project in the cluster; nil: only the pool
	// enforces quotas.
	Quota func(ctx context.Context, project int64) (Quota, error)

	Logger *slog.Logger     // slog.Default when nil
	Clock  func() time.Time // time.Now when nil
}

// Directory is a shared directory of a project.
type Directory struct {
	Name     string // a DNS label
	Path     string // below SharedRoot, such as /notebook/7
	ReadOnly bool   // for every pod
}

// Peer selects pods by the labels of their namespace and their own, addresses, or
// both.
type Peer struct {
	NamespaceLabels map[string]string
	PodLabels       map[string]string
	CIDRs           []string
	Port            int32 // on which it serves the programs in workspaces; 0: none
}

// Egress allows connections to a network.
type Egress struct {
	CIDR   string
	Except []string // networks inside it
	Ports  []int32  // TCP; all of every protocol when empty
}

// Ingress routes a host for each workspace, ws-{id}.{Domain}, to the portal, whose
// proxy checks every request. Without a Domain there are no ingresses, and the
// portal needs a wildcard host.
type Ingress struct {
	Class       string
	Domain      string
	TLSSecret   string // in the project's namespace; empty: none
	Annotations map[string]string
	Service     string // the portal's, as a DNS name
	Port        int32
}

// Quota is the resource quota of a project's namespace; 0 is no limit.
type Quota struct {
	CPU        int64 // milli
	Memory     int64 // MiB
	GPUCores   int64
	Workspaces int64
}

// withDefaults sets defaults. The error contains all problems.
func (c Config) withDefaults() (Config, error) {
	c.Instance, c.Prefix = cmp.Or(c.Instance, "weir"), cmp.Or(c.Prefix, "weir-p-")
	c.GPUBackend = cmp.Or(c.GPUBackend, BackendWeir)
	// Jupyter responds to this without a token, and does not count it as activity.
	c.ProbePath = cmp.Or(c.ProbePath, "/api?no_track_activity=1")
	c.UID = cmp.Or(c.UID, 1000)
	c.GID = cmp.Or(c.GID, c.UID)
	c.CPUShare = cmp.Or(c.CPUShare, 25)
	c.Grace = cmp.Or(c.Grace, 5*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
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
	if err := c.Storage.check(); err != nil {
		wrong = append(wrong, err)
	}
	need(c.Directories != nil, "the configuration does not say which directories a project has")
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

// restConfig returns the configuration of the client.
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
	// Only the API server's priority and fairness limit the rate of requests.
	found.QPS = -1
	return found, nil
}
