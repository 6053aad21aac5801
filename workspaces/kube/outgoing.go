package kube

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	meta "k8s.io/client-go/applyconfigurations/meta/v1"
	networking "k8s.io/client-go/applyconfigurations/networking/v1"

	"weir/models"
	"weir/workspaces/runtime"
)

// restrict has a pod know only the names that it may know, and keeps what it may reach. The label
// takes it out of the policy that opens the configured networks to all pods of a project.
func restrict(object *core.PodApplyConfiguration, o *runtime.Outgoing) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	object.WithLabels(map[string]string{labelOutgoing: restricted}).WithAnnotations(map[string]string{annotationOutgoing: string(text)})
	// Kubernetes requires the address of a resolver: no program listens there.
	object.Spec.WithDNSPolicy(corev1.DNSNone).WithDNSConfig(core.PodDNSConfig().WithNameservers("127.0.0.1"))
	names := map[netip.Addr][]string{} // Kubernetes accepts each address once
	for name, addresses := range o.Names {
		for _, a := range addresses {
			names[a] = append(names[a], name)
		}
	}
	for _, a := range slices.SortedFunc(maps.Keys(names), netip.Addr.Compare) {
		object.Spec.WithHostAliases(core.HostAlias().WithIP(a.String()).WithHostnames(slices.Sorted(slices.Values(names[a]))...))
	}
	return nil
}

// isRestricted reports whether the connections of a pod are restricted, by what nobody can change.
func isRestricted(pod *corev1.Pod) bool { return pod.Spec.DNSPolicy == corev1.DNSNone }

// outgoingOf returns what a pod may reach, as it was when it was created; nil: everything that is
// configured.
func outgoingOf(pod *corev1.Pod) *runtime.Outgoing {
	if !isRestricted(pod) {
		return nil
	}
	var o runtime.Outgoing
	if json.Unmarshal([]byte(pod.Annotations[annotationOutgoing]), &o) != nil {
		return &runtime.Outgoing{}
	}
	return &o
}

// networkLimit says how the connections of a pod are limited. Whether the network of the cluster
// enforces its policies is not measured.
func networkLimit(o *runtime.Outgoing) models.Limit {
	l := models.Limit{Resource: "network", How: models.Say("network policies, which the network of the cluster has to enforce")}
	switch {
	case o == nil:
	case len(o.Unknown) == 0:
		l.How = models.Say("a network policy of its own, which the network of the cluster has to enforce")
	default:
		l.How = models.Say("a network policy of its own, which the network of the cluster has to enforce; unknown when it started: %s",
			strings.Join(o.Unknown, ", "))
	}
	return l
}

// podPolicy opens to a restricted pod what is both listed and configured, and the pod to those with
// the labels beside; nil if that is nothing. The pod is selected by its labels.
func (c Config) podPolicy(r ref, pod *corev1.Pod, labels, beside map[string]string) *networking.NetworkPolicyApplyConfiguration {
	spec := networking.NetworkPolicySpec().WithPodSelector(meta.LabelSelector().WithMatchLabels(labels))
	if o := outgoingOf(pod); o != nil {
		for _, e := range c.Egress {
			for _, listed := range o.Networks {
				if within, ok := e.within(listed); ok {
					spec.WithEgress(within.rule())
				}
			}
		}
	}
	if len(spec.Egress) > 0 {
		spec.WithPolicyTypes("Egress")
	}
	if beside != nil {
		spec.WithPolicyTypes("Ingress").WithIngress(networking.NetworkPolicyIngressRule().WithPorts(policyPorts("TCP", notebookPort)...).
			WithFrom(networking.NetworkPolicyPeer().WithPodSelector(meta.LabelSelector().WithMatchLabels(beside))))
	}
	if len(spec.PolicyTypes) == 0 {
		return nil
	}
	return networking.NetworkPolicy(r.Pod, r.Namespace).WithLabels(labels).WithOwnerReferences(ownerOf(r, pod.UID)).WithSpec(spec)
}

// besideOf are the labels of the workspace whose programs may connect to a run; nil: nobody's.
func (c Config) besideOf(spec runtime.Spec) map[string]string {
	if spec.Beside == 0 || c.Portal.Port == 0 {
		return nil
	}
	return c.runLabels(kindWorkspace, runtime.Spec{Project: spec.Project, Member: spec.Member, Workspace: spec.Beside})
}

// within is what e allows in a network.
func (e Egress) within(network netip.Prefix) (Egress, bool) {
	narrow, err := netip.ParsePrefix(e.CIDR)
	if err != nil || !narrow.Overlaps(network) {
		return e, false
	}
	if network.Bits() > narrow.Bits() {
		narrow = network
	}
	part := Egress{CIDR: narrow.String(), Ports: e.Ports}
	for _, text := range e.Except {
		except, err := netip.ParsePrefix(text)
		if err != nil || !except.Overlaps(narrow) {
			continue
		}
		if except.Bits() <= narrow.Bits() {
			return e, false
		}
		part.Except = append(part.Except, text)
	}
	return part, true
}

func (e Egress) rule() *networking.NetworkPolicyEgressRuleApplyConfiguration {
	return networking.NetworkPolicyEgressRule().WithPorts(policyPorts("TCP", e.Ports...)...).
		WithTo(networking.NetworkPolicyPeer().WithIPBlock(networking.IPBlock().WithCIDR(e.CIDR).WithExcept(e.Except...)))
}

func policyPorts(protocol corev1.Protocol, ports ...int32) []*networking.NetworkPolicyPortApplyConfiguration {
	var all []*networking.NetworkPolicyPortApplyConfiguration
	for _, port := range ports {
		all = append(all, networking.NetworkPolicyPort().WithProtocol(protocol).WithPort(intstr.FromInt32(port)))
	}
	return all
}
