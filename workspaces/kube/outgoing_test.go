package kube

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"weir/workspaces/runtime"
)

func restrictedSpec(listed ...string) runtime.Spec {
	s := spec()
	s.Outgoing = &runtime.Outgoing{Names: map[string][]netip.Addr{"mirror.example": {netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("192.0.2.10")},
		"index.example": {netip.MustParseAddr("192.0.2.10")}}}
	for _, network := range listed {
		s.Outgoing.Networks = append(s.Outgoing.Networks, netip.MustParsePrefix(network))
	}
	return s
}

// A pod of a project that restricts connections is not selected by the policy that opens the
// configured networks, but by one of its own, which opens what is both configured and listed.
func TestOutgoingPolicy(t *testing.T) {
	c := config(t, func(c *Config) {
		c.Egress = []Egress{{CIDR: "0.0.0.0/0", Except: []string{"10.0.0.0/8", "192.0.2.128/25"}, Ports: []int32{443}}, {CIDR: "10.1.0.0/16"}}
	})
	s := restrictedSpec("192.0.2.0/24", "10.1.2.3/32", "10.2.0.0/16", "10.0.0.0/8")
	p, err := c.projectObjects(7, Quota{})
	if err != nil {
		t.Fatal(err)
	}
	open, closed, none := podOf(t, c, spec()), podOf(t, c, s), podOf(t, c, restrictedSpec())
	closed.UID = "uid"
	own := as[netv1.NetworkPolicy](t, c.ownedObjects(spec(), &closed).Policy) // a retry, for which the project is open again
	if own.Namespace != "weir-p-7" || len(own.OwnerReferences) != 1 || own.OwnerReferences[0].UID != "uid" || len(own.Spec.Ingress) != 0 {
		t.Errorf("the policy is %+v", own)
	}
	want := `[{"ports":[{"protocol":"TCP","port":443}],"to":[{"ipBlock":{"cidr":"192.0.2.0/24","except":["192.0.2.128/25"]}}]},` +
		`{"to":[{"ipBlock":{"cidr":"10.1.2.3/32"}}]},{"to":[{"ipBlock":{"cidr":"10.1.0.0/16"}}]}]`
	if got, _ := json.Marshal(own.Spec.Egress); string(got) != want {
		t.Errorf("it opens %s", got)
	}
	selects := func(policy netv1.NetworkPolicy, pod corev1.Pod) bool {
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		if err != nil {
			t.Fatal(err)
		}
		return selector.Matches(labels.Set(pod.Labels))
	}
	for i, policy := range p.Policies {
		policy := as[netv1.NetworkPolicy](t, policy)
		if got, want := []bool{selects(policy, open), selects(policy, closed)}, []bool{i < 3, i < 2}; !slices.Equal(got, want) {
			t.Errorf("%s selects the pods %v", policy.Name, got)
		}
	}
	if c.ownedObjects(s, &open).Policy != nil || c.ownedObjects(s, &none).Policy != nil || !selects(own, closed) {
		t.Error("a pod has a policy that opens nothing, or its own does not select it")
	}
	if c.runObjects(kindRun, s, &closed).Policy == nil || c.runObjects(kindPart, s, &closed).Policy != nil {
		t.Error("runs have such a policy, and parts of deployments, which reach nothing, have not")
	}
	if closed.Spec.DNSPolicy != corev1.DNSNone || open.Spec.DNSPolicy == corev1.DNSNone || len(open.Spec.HostAliases) != 0 ||
		len(closed.Spec.HostAliases) != 2 || closed.Spec.HostAliases[1].IP != "192.0.2.10" ||
		!slices.Equal(closed.Spec.HostAliases[1].Hostnames, []string{"index.example", "mirror.example"}) {
		t.Errorf("it knows %+v", closed.Spec.HostAliases)
	}
	for _, had := range []map[string]string{nil, open.Labels} { // without its label it would be opened
		patch := string(c.missingLabels(&closed, c.ref(s), had))
		delete(closed.Labels, labelOutgoing)
		if again := string(c.missingLabels(&closed, c.ref(s), had)); patch != "" || !strings.Contains(again, `"weir.dev/outgoing":"restricted"`) {
			t.Errorf("the label is not made again: %q, %q", patch, again)
		}
		closed.Labels[labelOutgoing] = restricted
	}
	for pod, says := range map[*corev1.Pod]string{&closed: "a network policy of its own, which", &open: "network policies, which"} {
		if l := limitsOf(pod)[2]; l.Resource != "network" || l.Enforced || !strings.HasPrefix(l.How.String(), says) {
			t.Errorf("the limit of the network is %+v", l)
		}
	}
}

// An address is open if and only if it is configured, not excepted, and listed.
func TestWithinIsTheIntersection(t *testing.T) {
	network := rapid.Custom(func(t *rapid.T) netip.Prefix {
		p, _ := netip.AddrFrom4([4]byte{10, rapid.Byte().Draw(t, "a"), 0, 0}).Prefix(rapid.IntRange(6, 18).Draw(t, "bits"))
		return p
	})
	contains := func(e Egress, a netip.Addr) bool {
		return netip.MustParsePrefix(e.CIDR).Contains(a) &&
			!slices.ContainsFunc(e.Except, func(p string) bool { return netip.MustParsePrefix(p).Contains(a) })
	}
	rapid.Check(t, func(t *rapid.T) {
		configured := Egress{CIDR: network.Draw(t, "configured").String()}
		for _, p := range rapid.SliceOfN(network, 0, 3).Draw(t, "except") {
			configured.Except = append(configured.Except, p.String())
		}
		listed := network.Draw(t, "listed")
		part, ok := configured.within(listed)
		for second := range 256 {
			for _, third := range []byte{0, 64, 255} {
				a := netip.AddrFrom4([4]byte{10, byte(second), third, 1})
				if want, got := contains(configured, a) && listed.Contains(a), ok && contains(part, a); want != got {
					t.Fatalf("%+v in %s: %s is open: %t", configured, listed, a, got)
				}
			}
		}
		for _, p := range part.Except { // the API server requires it
			if except := netip.MustParsePrefix(p); ok && (except.Bits() <= netip.MustParsePrefix(part.CIDR).Bits() || !netip.MustParsePrefix(part.CIDR).Contains(except.Addr())) {
				t.Fatalf("%+v is not valid", part)
			}
		}
	})
}

// The programs in a workspace reach its runs, and nobody else does, where they can start runs: their
// kernel is in the pods of both then.
func TestRunsBesideWorkspaces(t *testing.T) {
	s := spec()
	s.Command, s.Beside = []string{"true"}, 5
	for _, reachable := range []bool{true, false} {
		c := config(t, func(c *Config) {
			if !reachable {
				c.Portal.Port = 0
			}
		})
		object, err := c.runPodObject(kindRun, s)
		if err != nil {
			t.Fatal(err)
		}
		run, workspace := as[corev1.Pod](t, object), podOf(t, c, s)
		policy := c.runObjects(kindRun, s, &run).Policy
		if mounts(run) != reachable || mounts(workspace) != reachable || (policy != nil) != reachable {
			t.Errorf("reachable %t: %+v", reachable, policy)
		}
		if command := mountAt(workspace, commandPath); (command.SubPath == commandKey) != reachable || mountAt(run, commandPath).Name != "" {
			t.Errorf("reachable %t: the command line is mounted as %+v", reachable, command)
		}
		if !reachable {
			continue
		}
		own := as[netv1.NetworkPolicy](t, policy).Spec
		from, err := metav1.LabelSelectorAsSelector(own.Ingress[0].From[0].PodSelector)
		if err != nil {
			t.Fatal(err)
		}
		beside, other := s, s
		beside.Workspace, other.Workspace = s.Beside, 6
		if !from.Matches(labels.Set(podOf(t, c, beside).Labels)) || from.Matches(labels.Set(podOf(t, c, other).Labels)) || from.Matches(labels.Set(run.Labels)) ||
			len(own.Ingress) != 1 || len(own.Ingress[0].From) != 1 || len(own.Egress) != 0 || !slices.Equal(own.PolicyTypes, []netv1.PolicyType{"Ingress"}) ||
			own.Ingress[0].Ports[0].Port.IntVal != notebookPort || !maps.Equal(own.PodSelector.MatchLabels, c.runLabels(kindRun, s)) {
			t.Errorf("the run is open to %+v", own)
		}
	}
	limited := restrictedSpec("192.0.2.0/24")
	limited.Beside = 5
	c := config(t, func(c *Config) { c.Egress = []Egress{{CIDR: "192.0.2.0/24"}} })
	pod := podOf(t, c, limited)
	if own := as[netv1.NetworkPolicy](t, c.runObjects(kindRun, limited, &pod).Policy).Spec; len(own.Ingress) != 1 || len(own.Egress) != 1 || len(own.PolicyTypes) != 2 {
		t.Errorf("a restricted run is open to %+v", own)
	}
	s.Beside = 0
	if object, err := config(t, nil).runPodObject(kindRun, s); err != nil || mounts(as[corev1.Pod](t, object)) {
		t.Errorf("a run of no workspace has the kernel, %v", err)
	}
}

// mounts reports whether a pod has the kernel "Python (GPU)".
func mounts(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == kernelDir })
}
