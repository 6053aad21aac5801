package main

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"weir/workspaces/kube"
)

// parseStorage reads nfs://server/path or a directory.
func parseStorage(text string) (s kube.Storage, err error) {
	rest, nfs := strings.CutPrefix(text, "nfs://")
	if !nfs {
		s.HostPath, err = parseDir(text)
		return s, err
	}
	server, path, _ := strings.Cut(rest, "/")
	if server == "" || path == "" {
		return s, fmt.Errorf("%q must be nfs://server/path, or a directory", text)
	}
	s.NFSServer, s.NFSPath = server, "/"+path
	return s, nil
}

// parsePeer reads networks, or the name of a namespace.
func parsePeer(text string) (p kube.Peer, err error) {
	if text == "" || !strings.Contains(text, "/") {
		if text != "" {
			p.NamespaceLabels = map[string]string{"kubernetes.io/metadata.name": text}
			p.PodLabels = map[string]string{"app.kubernetes.io/name": "weir"}
		}
		return p, nil
	}
	p.CIDRs, err = parseNetworks(text)
	return p, err
}

func parseEgress(text string) (list []kube.Egress, err error) {
	networks, err := parseNetworks(text)
	for _, n := range networks {
		list = append(list, kube.Egress{CIDR: n})
	}
	return list, err
}

func parseNetworks(text string) (list []string, err error) {
	parts, _ := parseList(text)
	for _, part := range parts {
		prefix, err := netip.ParsePrefix(part)
		if err != nil {
			return nil, fmt.Errorf("%q is not a network such as 10.0.0.0/8", part)
		}
		list = append(list, prefix.String())
	}
	return list, nil
}

// parseList reads what stands between commas.
func parseList(text string) (list []string, err error) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list, nil
}

func parseLabel(text string) (string, error) {
	if problems := validation.IsValidLabelValue(text); text == "" || len(problems) > 0 {
		return "", fmt.Errorf("%q must be 1 to 63 letters, digits, dots, - and _", text)
	}
	return text, nil
}

// maxPrefix leaves room for a project's number in the name of a namespace.
const maxPrefix = 40

var prefixPattern = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?-$`)

func parsePrefix(text string) (string, error) {
	if len(text) > maxPrefix || !prefixPattern.MatchString(text) {
		return "", fmt.Errorf("%q must be at most %d small letters, digits and -, and end in -, such as weir-p-", text, maxPrefix)
	}
	return text, nil
}

func parsePullPolicy(text string) (corev1.PullPolicy, error) {
	if text == "" {
		return "", nil
	}
	_, err := oneOf("Always", "IfNotPresent", "Never")(text)
	return corev1.PullPolicy(text), err
}

const mebibyte = 1 << 20

// parseScratch reads a size as Kubernetes writes it, into MiB.
func parseScratch(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
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

// parseTolerations reads taints as kubectl writes them. Without a value any
// is tolerated, without an effect every.
func parseTolerations(text string) (all []corev1.Toleration, err error) {
	parts, _ := parseList(text)
	for _, part := range parts {
		t := corev1.Toleration{Operator: corev1.TolerationOpExists}
		taint, effect, limited := strings.Cut(part, ":")
		key, value, equal := strings.Cut(taint, "=")
		if equal {
			t.Operator = corev1.TolerationOpEqual
		}
		t.Key, t.Value, t.Effect = key, value, corev1.TaintEffect(effect)
		known := slices.Contains([]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}, t.Effect)
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 || limited && !known {
			return nil, fmt.Errorf("%q is not a taint such as nvidia.com/gpu:NoSchedule or dedicated=gpu:NoExecute", part)
		}
		all = append(all, t)
	}
	return all, nil
}

func parseAbsolute(text string) (string, error) {
	if text != "" && !filepath.IsAbs(text) {
		return "", fmt.Errorf("%q must be an absolute path", text)
	}
	return text, nil
}

func parseIngressService(text string) (i kube.Ingress, err error) {
	if text == "" {
		return i, nil
	}
	host, port, err := net.SplitHostPort(text)
	number, badPort := strconv.ParseUint(port, 10, 16)
	if _, badHost := parseDomain(host); err != nil || badHost != nil || badPort != nil || number == 0 {
		return i, fmt.Errorf("%q must be a service and its port, such as weir.weir.svc.cluster.local:80", text)
	}
	return kube.Ingress{Service: host, Port: int32(number)}, nil
}

func parsePairs(text string) (map[string]string, error) {
	parts, _ := parseList(text)
	if len(parts) == 0 {
		return nil, nil
	}
	pairs := map[string]string{}
	for _, part := range parts {
		key, value, ok := strings.Cut(part, "=")
		if !ok || len(validation.IsQualifiedName(strings.ToLower(key))) > 0 {
			return nil, fmt.Errorf("%q is not an annotation such as cert-manager.io/cluster-issuer=ca", part)
		}
		pairs[key] = value
	}
	return pairs, nil
}

// completeIngress gives the workspaces' ingresses the domain at which the
// portal answers for them, and says what of them has no effect.
func (c *Config) completeIngress() (problems []string) {
	i := &c.Kube.Ingress
	if i.Service == "" {
		if i.Class != "" || i.TLSSecret != "" || len(i.Annotations) > 0 {
			problems = append(problems, "kube-ingress-service: is needed by the other settings of ingresses")
		}
		return problems
	}
	if i.Domain = c.AppsDomain; !strings.Contains(i.Domain, ".") {
		problems = append(problems, "apps-domain: kube-ingress-service needs a domain that the cluster's ingress answers for, such as apps.example.org")
	}
	return problems
}
