//go:build cluster

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"weir/models"
	"weir/tools/cluster"
)

// agentPod is what of the agents' DaemonSet the agent of a test has: a service
// account, and a pod on the node in whose name its tokens are.
type agentPod struct {
	t         *testing.T
	client    *kubernetes.Clientset
	namespace string
	pod       *corev1.Pod
}

const agentAccount = "weir-agents/weir-agent"

func newAgentPod(t *testing.T, k *cluster.Cluster, client *kubernetes.Clientset) *agentPod {
	t.Helper()
	namespace, account, _ := strings.Cut(agentAccount, "/")
	p := &agentPod{t: t, client: client, namespace: namespace}
	_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err == nil {
		_, err = client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	p.pod, err = client.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: corev1.PodSpec{
		ServiceAccountName: account, NodeName: k.Node, Containers: []corev1.Container{
			{Name: "agent", Image: k.Image, ImagePullPolicy: corev1.PullNever, Command: []string{"sleep", "3600"}}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// token is written to a file as the kubelet does it.
func (p *agentPod) token(file string) {
	p.t.Helper()
	_, account, _ := strings.Cut(agentAccount, "/")
	made, err := p.client.CoreV1().ServiceAccounts(p.namespace).CreateToken(p.t.Context(), account, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{"weir"}, BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.pod.Name, UID: p.pod.UID}}}, metav1.CreateOptions{})
	if err == nil {
		err = os.WriteFile(file, []byte(made.Status.Token), 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// pinned writes the certificate of the portal's authority to a file.
func (s *server) pinned(file string) {
	s.t.Helper()
	code, stdout, stderr := weir(s.t, "", s.settings(), "admin", "authority")
	if code != 0 {
		s.t.Fatalf("exit code %d: %s", code, stderr)
	}
	if err := os.WriteFile(file, []byte(stdout), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// says polls until the agent has said something since a length of its log.
func (m *machine) says(since int, text string) {
	m.t.Helper()
	eventually(m.t, ready, func() string {
		if !strings.Contains(m.log.String()[since:], text) {
			return fmt.Sprintf("the agent does not say %q", text)
		}
		return ""
	})
}

// forget is what becomes of an agent whose pod is made anew elsewhere than in a
// directory of the node.
func (m *machine) forget() {
	m.t.Helper()
	m.kill()
	if err := os.RemoveAll(m.dir); err != nil {
		m.t.Fatal(err)
	}
}

// An agent that runs on a node enrols by the cluster's word: without a code,
// under the node's name, and again whenever it has lost what it knew, but not
// against an administrator's will.
func TestAgentJoinsByCluster(t *testing.T) {
	k, client := newCluster(t)
	o := quick(inCluster(t, k))
	o.args = append(o.args, "--kube-agents", agentAccount)
	s := newServer(t, o)
	pod := newAgentPod(t, k, client)
	m := newMachine(t, s, "node")
	token, certificate := filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "authority.crt")
	pod.token(token)
	s.pinned(certificate)
	env := []string{"WEIR_CLUSTER_TOKEN_FILE=" + token, "WEIR_AUTHORITY_CERTIFICATE=" + certificate}

	byHand := m.gpuCode()
	m.start("", env...)
	m.says(0, "no platform administrator")
	s.admin()
	s.awaitProvider(models.ProviderOnline, time.Time{})
	p := s.beats()
	if p.Name != k.Node || p.GPUCode == byHand {
		t.Errorf("the provider is %+v", p)
	}
	eventually(t, ready, func() string {
		node, err := client.CoreV1().Nodes().Get(t.Context(), k.Node, metav1.GetOptions{})
		if cores := node.Status.Allocatable["weir.dev/gpu-cores"]; err != nil || cores.Value() != 200 {
			return fmt.Sprintf("the node has %s GPU cores, %v", cores.String(), err)
		}
		return ""
	})

	same := func(what string) {
		t.Helper()
		if again := s.beats(); again.ID != p.ID || again.Name != k.Node || again.GPUCode != p.GPUCode {
			t.Errorf("%s it is %+v", what, again)
		}
		s.holdsRules(1)
	}
	m.kill()
	m.start("", env...)
	same("started again")
	m.forget()
	m.start("", env...)
	same("without its state")
	m.forget()
	m.start("", append(env, "WEIR_FAILPOINT=agent.joined")...)
	if exit := m.wait(); exit != -1 {
		t.Fatalf("the agent ended with exit code %d and not at the failpoint", exit)
	}
	m.start("", env...)
	same("killed while it enrolled")
	m.forget()
	s.stop()
	s.start("WEIR_FAILPOINT=join.committed")
	m.start("", env...)
	if exit := s.wait(); exit != -1 {
		t.Fatalf("the server ended with exit code %d and not at the failpoint", exit)
	}
	s.start()
	same("when its portal was killed")

	said := len(m.log.String())
	s.api(s.admin()).must("POST", fmt.Sprintf("/pool/providers/%d/revoke", p.ID), nil, nil)
	m.says(said, k.Node+" is no longer authorized")
	s.awaitProvider(models.ProviderLost, time.Time{})
	s.holdsRules(0)
	s.authorize(p.GPUCode) // the code is carried nowhere
	same("authorised again")

	m.forget()
	if err := os.WriteFile(token, []byte("none of the cluster's"), 0o600); err != nil {
		t.Fatal(err)
	}
	said = len(m.log.String())
	m.start("", env...)
	m.says(said, "rejected this token")
	pod.token(token) // as a kubelet replaces it
	same("with a token that came late")
}
