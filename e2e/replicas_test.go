//go:build cluster

package e2e

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir/models/store/storetest"
	"weir/tools/cluster"
)

// lease is how long a leader that is silent keeps the lead, and some.
const lease = 30 * time.Second

// replicas are two servers of one portal, on one database and one cluster.
func replicas(t *testing.T, k *cluster.Cluster, env ...string) (a, b *server) {
	t.Helper()
	o := inCluster(t, k)
	o.database = storetest.Postgres(t)
	o.env = append(env, "WEIR_AUTHORITY_FILE="+filepath.Join(t.TempDir(), "authority.pem"))
	a = newServer(t, o)
	a.admin()
	b = newServer(t, o)
	b.adminOnce.Do(func() { b.adminToken = a.adminToken })
	return a, b
}

// leads counts how often a server came to lead.
func (s *server) leads() int { return strings.Count(s.log.String(), "became leader") }

// Whoever of two servers is asked, one of them drives workspaces; when it is
// paused for longer than its lease, or killed, the other does, and the old
// leader does nothing when it comes back.
func TestReplicas(t *testing.T) {
	k, client := newCluster(t)
	one, other := replicas(t, k)
	env := one.jupyterIn(k)
	other.nodeLends(k) // the server that is never paused: an agent is lost after 20 s of silence
	team := one.team("speech", share.times(2), "ada", "ben")
	ada, ben := team.Members[0], team.Members[1]
	elsewhere := member{User: ada.User, ID: ada.ID, Email: ada.Email, Name: ada.Name, api: other.api(ada.token)}
	if one.leads() != 1 || other.leads() != 0 {
		t.Fatalf("the first leads %d times, the other %d", one.leads(), other.leads())
	}

	// Requested of the one that does not lead.
	first := elsewhere.await(elsewhere.launch(team.Project, env, "one"), "running", starting)
	nb := elsewhere.open(first.ID)
	if got := executeCell(t, nb.client, nb.origin, "print(6*7)"); got != "42\n" {
		t.Errorf("through the other server the cell printed %q", got)
	}

	topic := fmt.Sprintf("project:%d", team.Project)
	bens := ben.follow(topic)
	one.pause(true)
	// Gone when the call returns, also from the server that cannot hear of it.
	other.api(other.admin()).must("DELETE", fmt.Sprintf("/projects/%d/members/%d", team.Project, ben.ID), nil, nil)
	elsewhere.must("POST", workspacePath(first.ID)+"/stop", nil, nil)
	elsewhere.await(first.ID, "stopped", lease+gone)
	if other.leads() != 1 {
		t.Errorf("the other came to lead %d times", other.leads())
	}
	second := elsewhere.await(elsewhere.launch(team.Project, env, "two"), "running", starting)
	pod := onlyPod(t, client, second.namespace())
	one.pause(false)
	third := ada.await(ada.launch(team.Project, env, "three"), "running", starting)
	if told, err := io.ReadAll(bens); err != nil || strings.Contains(string(told), "data: "+topic) {
		t.Errorf("the paused server tells who was removed %q, %v", told, err)
	}

	other.kill()
	ada.must("POST", workspacePath(third.ID)+"/stop", nil, nil)
	ada.await(third.ID, "stopped", lease+gone)
	ada.await(second.ID, "running", gone)
	again, err := client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil || again.UID != pod.UID {
		t.Errorf("another pod runs for the second workspace: %v", err)
	}
	if one.leads() != 2 {
		t.Errorf("the first came to lead %d times", one.leads())
	}
	one.stopWorkspaces()
	eventually(t, gone, func() string { return leftIn(t, client, second.namespace()) })
	other.start()
}
