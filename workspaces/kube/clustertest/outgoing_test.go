//go:build cluster

package clustertest

import (
	"net/netip"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir/workspaces/kube"
	"weir/workspaces/runtime"
)

// A pod of a project that restricts connections has a policy of its own, which ends with it, and
// knows the listed names alone.
func TestOutgoingConnections(t *testing.T) {
	c := config(t)
	c.Egress = []kube.Egress{{CIDR: "0.0.0.0/0", Except: []string{"10.0.0.0/8"}}}
	r, admin := open(t, c), administrator(t)
	s := script("getent hosts mirror.example || echo unknown; getent hosts kubernetes.default.svc || echo closed; env; exec sleep 600")
	s.CPU = 500
	s.Outgoing = &runtime.Outgoing{Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		Names: map[string][]netip.Addr{"mirror.example": {netip.MustParseAddr("192.0.2.9")}, "index.example": {netip.MustParseAddr("192.0.2.9")}}}
	state := start(t, r, s)
	log := until(t, r, state, "printed", func(s runtime.Status) bool { return strings.Contains(s.LogTail, "HOME=") }).LogTail
	for _, want := range []string{"192.0.2.9", "mirror.example", "closed\n", "OMP_NUM_THREADS=1\n"} {
		if !strings.Contains(log, want) {
			t.Errorf("without %q:\n%s", want, log)
		}
	}
	policies := admin.NetworkingV1().NetworkPolicies(c.Prefix + "7")
	own, err := policies.Get(t.Context(), "ws-1-1", metav1.GetOptions{})
	if err != nil || len(own.Spec.Egress) != 1 || own.Spec.Egress[0].To[0].IPBlock.CIDR != "192.0.2.0/24" {
		t.Fatalf("the policy is %+v, %v", own, err)
	}
	if err := r.Stop(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string { return "the policy is still there" }, func() bool {
		_, err := policies.Get(t.Context(), "ws-1-1", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
