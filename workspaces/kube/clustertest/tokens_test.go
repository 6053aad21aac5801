//go:build cluster

package clustertest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"weir/models"
	"weir/workspaces/kube"
)

// daemon is a namespace with the service accounts of agents and of others, and
// pods that are on a node as far as the API server knows.
type daemon struct {
	*testing.T
	client    *kubernetes.Clientset
	namespace string
}

func newDaemon(t *testing.T, namespace string) *daemon {
	t.Helper()
	d := &daemon{t, administrator(t), namespace}
	_, err := d.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.client.CoreV1().Namespaces().Delete(context.Background(), namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{"agent", "other"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := d.client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// pod runs as a service account, on a node unless that is empty.
func (d *daemon) pod(name, account, node string) *authenticationv1.BoundObjectReference {
	d.Helper()
	spec := corev1.PodSpec{ServiceAccountName: account, NodeName: node, Containers: []corev1.Container{
		{Name: "agent", Image: harness.Image, ImagePullPolicy: corev1.PullNever, Command: []string{"sleep", "600"}}}}
	if node == "" {
		spec.NodeSelector = map[string]string{"there-is": "no-such-node"}
	}
	made, err := d.client.CoreV1().Pods(d.namespace).Create(d.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		d.Fatal(err)
	}
	return &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: name, UID: made.UID}
}

// token is one of a service account, as a kubelet asks for it.
func (d *daemon) token(account string, bound *authenticationv1.BoundObjectReference, audiences ...string) string {
	d.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, BoundObjectRef: bound}}
	made, err := d.client.CoreV1().ServiceAccounts(d.namespace).CreateToken(d.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		d.Fatal(err)
	}
	return made.Status.Token
}

// The cluster vouches for the agents' pods, each for its node, and for nobody
// else.
func TestTokens(t *testing.T) {
	c := config(t)
	r := open(t, c)
	d := newDaemon(t, c.Instance+"-agents")
	where, account := node(t), d.namespace+"/agent"
	agent, other := d.pod("agent", "agent", where), d.pod("other", "other", where)
	good := d.token("agent", agent, kube.Audience)
	if name, err := r.NodeOf(t.Context(), account, good); err != nil || name != where {
		t.Errorf("%q, %v", name, err)
	}
	if name, err := r.NodeOf(t.Context(), account, d.token("agent", agent, "somebody", kube.Audience)); err != nil || name != where {
		t.Errorf("for two audiences: %q, %v", name, err)
	}

	uid := must(d.client.CoreV1().Nodes().Get(t.Context(), where, metav1.GetOptions{}))(t).UID
	onNode := &authenticationv1.BoundObjectReference{Kind: "Node", APIVersion: "v1", Name: where, UID: uid}
	body, signature, _ := strings.Cut(good[strings.Index(good, ".")+1:], ".")
	head := good[:strings.Index(good, ".")]
	for name, token := range map[string]string{
		"for the API server":   d.token("agent", agent),
		"for another audience": d.token("agent", agent, "weird"),
		"of another account":   d.token("other", other, kube.Audience),
		"not of a pod":         d.token("agent", nil, kube.Audience),
		"of a node, no pod":    d.token("agent", onNode, kube.Audience),
		"of a pod on no node":  d.token("agent", d.pod("waiting", "agent", ""), kube.Audience),
		"forged":               head + "." + body + "." + strings.Repeat("A", len(signature)),
		"unsigned":             head + "." + body + ".",
		"garbage":              "garbage",
	} {
		refusedAs(t, r, account, name, token, models.KindUnauthenticated)
	}
	refusedAs(t, r, "default/agent", "of another namespace", good, models.KindUnauthenticated)

	if err := d.client.CoreV1().Pods(d.namespace).Delete(t.Context(), "agent", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	var err error
	eventually(t, func() string { return "the token of a pod that is gone is good" }, func() bool {
		_, err = r.NodeOf(t.Context(), account, good)
		return err != nil
	})
	if models.KindOf(err) != models.KindUnauthenticated {
		t.Errorf("the token of a pod that is gone: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.NodeOf(ctx, account, good); models.KindOf(err) != models.KindUnavailable {
		t.Errorf("when the cluster cannot be asked: %v", err)
	}
}

// The token that a kubelet projects into a pod, as docs/how-to/machines.md has it, is
// one that the cluster vouches by.
func TestProjectedToken(t *testing.T) {
	c := config(t)
	r := open(t, c)
	d := newDaemon(t, c.Instance+"-agents")
	out := share(t)
	volumes := []corev1.Volume{
		{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: kube.Audience, Path: "token"}}}}}},
		{Name: "out", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: out}}},
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: corev1.PodSpec{ServiceAccountName: "agent", NodeName: node(t), Volumes: volumes,
		Containers: []corev1.Container{{Name: "agent", Image: harness.Image, ImagePullPolicy: corev1.PullNever,
			Command:      []string{"sh", "-c", "cp /token/token /out/new && mv /out/new /out/token && exec sleep 600"},
			VolumeMounts: []corev1.VolumeMount{{Name: "token", MountPath: "/token"}, {Name: "out", MountPath: "/out"}}}}}}
	if _, err := d.client.CoreV1().Pods(d.namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var token []byte
	eventually(t, func() string { return "the pod has no token" }, func() (ok bool) {
		var err error
		token, err = os.ReadFile(filepath.Join(out, "token"))
		return err == nil
	})
	if name, err := r.NodeOf(t.Context(), d.namespace+"/agent", string(token)); err != nil || name != node(t) {
		t.Errorf("%q, %v", name, err)
	}
}

func refusedAs(t *testing.T, r *kube.Runtime, account, name, token string, kind models.Kind) {
	t.Helper()
	node, err := r.NodeOf(t.Context(), account, token)
	if node != "" || models.KindOf(err) != kind {
		t.Errorf("a token %s: %q, %v", name, node, err)
	}
	if err != nil && len(token) > 20 && strings.Contains(err.Error(), token) {
		t.Errorf("a token %s is in the error", name)
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
