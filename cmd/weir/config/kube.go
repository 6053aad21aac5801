package config

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"weir/workspaces/kube"
)

// kubeSettings are the settings of workspaces in a Kubernetes cluster.
var kubeSettings = []setting{
	{name: "kubeconfig", kind: "FILE",
		help: "path to a kubeconfig file (default the service account of the pod that Weir runs in)",
		set:  into(func(c *Config) *string { return &c.Kube.Kubeconfig }, anyText)},
	{name: "kube-instance", kind: "NAME", defaultText: "weir",
		help: "name that distinguishes the objects of this installation from those of others in the cluster",
		set:  into(func(c *Config) *string { return &c.Kube.Instance }, parseLabel)},
	{name: "kube-prefix", kind: "TEXT", defaultText: "weir-p-",
		help: "prefix of the names of project namespaces",
		set:  into(func(c *Config) *string { return &c.Kube.Prefix }, parsePrefix)},
	{name: "kube-storage", kind: "STORAGE",
		help: "shared directories as the cluster mounts them: nfs://SERVER/PATH, SERVER:/PATH, claim:NAMESPACE/NAME, or a directory on every node",
		set:  into(func(c *Config) *kube.Storage { return &c.Kube.Storage }, optional(kube.ParseStorage))},
	{name: "kube-mount-options", kind: "OPTION,...",
		help: "mount options of NFS (default nfsvers=4.2,hard,noatime)",
		set:  into(func(c *Config) *[]string { return &c.Kube.Storage.MountOptions }, ParseList)},
	{name: "kube-portal", kind: "CIDR,...|NAMESPACE",
		help: "the only clients that may connect to notebooks: networks, or the namespace of the portal's pods",
		set:  into(func(c *Config) *kube.Peer { return &c.Kube.Portal }, optional(parsePeer))},
	{name: "kube-egress", kind: "CIDR,...",
		help: "networks that notebooks may connect to, in addition to DNS",
		set:  into(func(c *Config) *[]kube.Egress { return &c.Kube.Egress }, listOf(parseEgress))},
	{name: "kube-image", kind: "IMAGE",
		help: "image of environments that specify none",
		set:  into(func(c *Config) *string { return &c.Kube.Image }, anyText)},
	{name: "kube-pull-policy", kind: "NAME",
		help: "image pull policy: Always, IfNotPresent or Never (default the cluster's)",
		set:  into(func(c *Config) *corev1.PullPolicy { return &c.Kube.PullPolicy }, optional(parsePullPolicy))},
	{name: "kube-scratch", kind: "SIZE",
		help: "what a workspace may write outside the shared directories, such as 20Gi (default no limit)",
		set:  into(func(c *Config) *int64 { return &c.Kube.Scratch }, optional(parseScratch))},
	{name: "kube-cpu-share", kind: "PERCENT", defaultText: "25",
		help: "CPU request of a workspace, in percent of its CPU limit",
		set:  into(func(c *Config) *int64 { return &c.Kube.CPUShare }, parsePercent)},
	{name: "kube-grace", kind: "DURATION", defaultText: "5s",
		help: "how long a notebook may take to terminate before it is killed",
		set:  into(func(c *Config) *time.Duration { return &c.Kube.Grace }, durationWithin(time.Second, 10*time.Minute))},
	{name: "kube-tolerations", kind: "KEY[=VALUE][:EFFECT],...",
		help: "node taints that workspaces tolerate, such as nvidia.com/gpu:NoSchedule",
		set:  into(func(c *Config) *[]corev1.Toleration { return &c.Kube.Tolerations }, listOf(parseToleration))},
	{name: "kube-gpu-backend", kind: "NAME", defaultText: kube.BackendWeir,
		help: "what assigns GPUs to pods: weir, nvidia (whole GPUs, through NVIDIA's device plugin) or hami",
		set:  into(func(c *Config) *string { return &c.Kube.GPUBackend }, oneOf(kube.BackendWeir, kube.BackendNVIDIA, kube.BackendHAMi))},
	{name: "kube-runtime-class", kind: "NAME",
		help: "runtime class of pods with GPUs, such as nvidia",
		set:  into(func(c *Config) *string { return &c.Kube.RuntimeClass }, anyText)},
	{name: "kube-mps-dir", kind: "DIR",
		help: "directory on every node that holds those of its GPUs' MPS daemons, such as the agent's DATA-DIR/mps",
		set:  into(func(c *Config) *string { return &c.Kube.MPSDir }, optional(parseAbsolute))},
	{name: "kube-ingress-service", kind: "HOST:PORT",
		help: "DNS name and port of the portal's service; creates an ingress for each workspace under apps-domain, for a cluster without a wildcard host",
		set:  into(func(c *Config) *kube.Ingress { return &c.Kube.Ingress }, optional(parseIngressService))},
	{name: "kube-ingress-class", kind: "NAME",
		help: "class of the workspaces' ingresses (default the cluster's)",
		set:  into(func(c *Config) *string { return &c.Kube.Ingress.Class }, optional(parseDomain))},
	{name: "kube-ingress-tls-secret", kind: "NAME",
		help: "secret with a TLS certificate for the workspaces' hosts, in each project's namespace (default none)",
		set:  into(func(c *Config) *string { return &c.Kube.Ingress.TLSSecret }, optional(parseDomain))},
	{name: "kube-ingress-annotations", kind: "KEY=VALUE,...",
		help: "annotations of the workspaces' ingresses",
		set:  into(func(c *Config) *map[string]string { return &c.Kube.Ingress.Annotations }, optional(parsePairs))},
}

// parsePeer parses networks, or the name of a namespace.
func parsePeer(text string) (p kube.Peer, err error) {
	if strings.Contains(text, "/") {
		p.CIDRs, err = listOf(parseNetwork)(text)
		return p, err
	}
	return kube.Peer{NamespaceLabels: map[string]string{"kubernetes.io/metadata.name": text},
		PodLabels: map[string]string{"app.kubernetes.io/name": "weir"}}, nil
}

func parseEgress(text string) (e kube.Egress, err error) {
	e.CIDR, err = parseNetwork(text)
	return e, err
}

func parseNetwork(text string) (string, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return "", fmt.Errorf("%q is not a network such as 10.0.0.0/8", text)
	}
	return prefix.String(), nil
}

func parseLabel(text string) (string, error) {
	if problems := validation.IsValidLabelValue(text); text == "" || len(problems) > 0 {
		return "", fmt.Errorf("%q must be 1 to 63 letters, digits, dots, - and _", text)
	}
	return text, nil
}

// maxPrefix is the maximum length of a prefix, so that the name of a namespace
// can also contain the id of a project.
const maxPrefix = 40

var prefixPattern = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?-$`)

func parsePrefix(text string) (string, error) {
	if len(text) > maxPrefix || !prefixPattern.MatchString(text) {
		return "", fmt.Errorf("%q must be at most %d lowercase letters, digits and -, and end in -, such as weir-p-", text, maxPrefix)
	}
	return text, nil
}

func parsePullPolicy(text string) (corev1.PullPolicy, error) {
	_, err := oneOf("Always", "IfNotPresent", "Never")(text)
	return corev1.PullPolicy(text), err
}

const mebibyte = 1 << 20

// parseScratch parses a quantity of Kubernetes and returns MiB.
func parseScratch(text string) (int64, error) {
	size, err := resource.ParseQuantity(text)
	if err != nil || size.Value() < mebibyte {
		return 0, fmt.Errorf("%q must be a size of at least 1Mi, such as 20Gi", text)
	}
	return size.Value() / mebibyte, nil
}

func parsePercent(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > 100 {
		return 0, fmt.Errorf("%q must be a number from 1 to 100", text)
	}
	return n, nil
}

// parseToleration parses a taint in the syntax of kubectl. Without a value all
// values are tolerated, and without an effect all effects.
func parseToleration(text string) (corev1.Toleration, error) {
	taint, effect, limited := strings.Cut(text, ":")
	key, value, equal := strings.Cut(taint, "=")
	t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Value: value, Effect: corev1.TaintEffect(effect)}
	if equal {
		t.Operator = corev1.TolerationOpEqual
	}
	known := slices.Contains([]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
		corev1.TaintEffectNoExecute}, t.Effect)
	if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 || limited && !known {
		return t, fmt.Errorf("%q is not a taint such as nvidia.com/gpu:NoSchedule or dedicated=gpu:NoExecute", text)
	}
	return t, nil
}

func parseAbsolute(text string) (string, error) {
	if !filepath.IsAbs(text) {
		return "", fmt.Errorf("%q must be an absolute path", text)
	}
	return text, nil
}

func parseIngressService(text string) (i kube.Ingress, err error) {
	host, port, err := net.SplitHostPort(text)
	number, badPort := strconv.ParseUint(port, 10, 16)
	if _, badHost := parseDomain(host); err != nil || badHost != nil || badPort != nil || number == 0 {
		return i, fmt.Errorf("%q must be a service and its port, such as weir.weir.svc.cluster.local:80", text)
	}
	return kube.Ingress{Service: host, Port: int32(number)}, nil
}

func parsePairs(text string) (map[string]string, error) {
	pairs := map[string]string{}
	_, err := listOf(func(part string) (struct{}, error) {
		key, value, ok := strings.Cut(part, "=")
		if !ok || len(validation.IsQualifiedName(strings.ToLower(key))) > 0 {
			return struct{}{}, fmt.Errorf("%q is not an annotation such as cert-manager.io/cluster-issuer=ca", part)
		}
		pairs[key] = value
		return struct{}{}, nil
	})(text)
	return pairs, err
}

// completeIngress sets the domain of the workspaces' ingresses and checks
// settings against each other.
func (c *Config) completeIngress() (p problems) {
	i := &c.Kube.Ingress
	if i.Service == "" {
		p.require(i.Class == "" && i.TLSSecret == "" && len(i.Annotations) == 0,
			"kube-ingress-service: is required by the other settings of ingresses")
		return p
	}
	i.Domain = c.AppsDomain
	p.require(strings.Contains(i.Domain, "."),
		"apps-domain: kube-ingress-service requires a domain that the cluster's ingress controller serves, such as apps.example.org")
	return p
}
