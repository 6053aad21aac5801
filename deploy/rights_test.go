//go:build cluster

package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	object "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"weir/tools/cluster"
	"weir/workspaces/kube"
	"weir/workspaces/runtime"
)

// right is a permission of an account, such as “get pods/log”.
type right struct{ group, resource, verb string }

// recorder records which rights requests to the API server used, and which
// were missing.
type recorder struct {
	mu      sync.Mutex
	used    map[right]bool
	refused []right
}

// tap records the requests of one transport.
type tap struct {
	*recorder
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r tap) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range rightsOf(req, resp.StatusCode) {
		if resp.StatusCode == http.StatusForbidden {
			r.refused = append(r.refused, one)
		}
		r.used[one] = true
	}
	return resp, nil
}

func (r *recorder) has(one right) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used[one]
}

// rightsOf returns the rights that a request needs. Its path is /api/v1 or
// /apis/GROUP/VERSION, perhaps /namespaces/NAME, then
// /RESOURCE/NAME/SUBRESOURCE.
func rightsOf(req *http.Request, status int) []right {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	default:
		return nil
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	name := parts[0]
	if len(parts) > 2 {
		name += "/" + parts[2]
	}
	verb := map[string]string{"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete", "GET": "get"}[req.Method]
	if len(parts) == 1 && req.Method == http.MethodGet {
		verb = "list"
	}
	if req.URL.Query().Get("watch") != "" {
		verb = "watch"
	}
	if len(parts) == 1 && req.Method == http.MethodDelete {
		verb = "deletecollection"
	}
	all := []right{{group, name, verb}}
	if verb == "patch" && status == http.StatusCreated {
		all = append(all, right{group, name, "create"})
	}
	return all
}

// granted lists the rights of a role.
func granted(role *rbacv1.ClusterRole) (all []right) {
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, right{group, name, verb})
				}
			}
		}
	}
	return all
}

func TestRightsOf(t *testing.T) {
	for request, want := range map[string]right{
		"GET /api/v1/pods?watch=true":                               {"", "pods", "watch"},
		"GET /api/v1/namespaces":                                    {"", "namespaces", "list"},
		"PATCH /api/v1/namespaces/a":                                {"", "namespaces", "patch"},
		"GET /api/v1/namespaces/a/pods/b/log":                       {"", "pods/log", "get"},
		"DELETE /api/v1/persistentvolumes":                          {"", "persistentvolumes", "deletecollection"},
		"PATCH /api/v1/nodes/n/status":                              {"", "nodes/status", "patch"},
		"PATCH /apis/networking.k8s.io/v1/namespaces/a/ingresses/b": {"networking.k8s.io", "ingresses", "patch"},
		"POST /apis/authentication.k8s.io/v1/tokenreviews":          {"authentication.k8s.io", "tokenreviews", "create"},
	} {
		method, url, _ := strings.Cut(request, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := rightsOf(req, http.StatusOK); len(got) != 1 || got[0] != want {
			t.Errorf("%s needs %v", request, got)
		}
	}
}

// testRuntime is a runtime with the portal's rights.
type testRuntime struct {
	*testing.T
	*kube.Runtime
	config kube.Config
}

func testRights(t *testing.T, k *cluster.Cluster, portal *rest.Config, root string, made []object.Object) {
	seen := &recorder{used: map[right]bool{}}
	c := rest.CopyConfig(portal)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return tap{seen, next} })
	l := testRuntime{t, nil, kube.Config{Rest: c, Instance: "weir", Prefix: "weir-p-", Image: k.Image, PullPolicy: corev1.PullNever,
		Storage: kube.Storage{HostPath: root}, SharedRoot: root, Directories: layout, Grace: time.Second, Portal: kube.Peer{CIDRs: []string{"127.0.0.1/32"}},
		Ingress: kube.Ingress{Domain: "apps.example.org", Service: "weir.weir.svc", Port: 80}}}
	defer seen.compare(t, Of[*rbacv1.ClusterRole](made)[0])
	l.open()
	nodes, err := clientOf(t, portal).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		t.Fatalf("nodes: %v, %v", nodes, err)
	}
	l.useAll(nodes.Items[0].Name, seen)
}

func layout(project int64) []kube.Directory {
	return []kube.Directory{{Name: "project", Path: fmt.Sprintf("/notebook/%d", project)}, {Name: "public-model", Path: "/public_model", ReadOnly: true}}
}

// compare compares a role with the recorded requests.
func (r *recorder) compare(t *testing.T, role *rbacv1.ClusterRole) {
	t.Helper()
	for _, one := range granted(role) {
		if !r.has(one) {
			t.Errorf("the role grants “%s %s” of the group %q, and nothing needs it", one.verb, one.resource, one.group)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for one := range r.used {
		if !slices.Contains(granted(role), one) {
			t.Errorf("the role does not grant “%s %s” of the group %q", one.verb, one.resource, one.group)
		}
	}
	for _, one := range r.refused {
		t.Errorf("“%s %s” of the group %q was forbidden", one.verb, one.resource, one.group)
	}
}

// open opens a runtime for the test.
func (l *testRuntime) open() {
	l.Helper()
	r, err := kube.New(l.Context(), l.config)
	if err != nil {
		l.Fatal(err)
	}
	l.Runtime = r
	l.Cleanup(func() {
		if err := r.Close(); err != nil {
			l.Error(err)
		}
	})
}

// useAll makes every kind of request that the portal makes.
func (l *testRuntime) useAll(node string, seen *recorder) {
	if _, err := l.Advertise(l.Context(), map[string]int64{node: 100}); err != nil {
		l.Error(err)
	}
	if _, err := l.NodeOf(l.Context(), "weir-agents/weir-agent", "forged"); err == nil {
		l.Error("a forged token is good")
	}
	spec := runtime.Spec{Workspace: 1, Generation: 1, Project: 9, Member: 1, Token: "c0ffee" + strings.Repeat("1", 20),
		Command: []string{"sh", "-c", "echo begun; exec sleep 600"}}
	first := l.start(spec)
	l.until(first, func(s runtime.Status) bool { return strings.Contains(s.LogTail, "begun") })
	spec.Workspace, spec.Image = 2, "weir.local/none:1"
	second := l.start(spec)
	l.until(second, func(runtime.Status) bool { return seen.has(right{"", "events", "list"}) }) // why it does not begin
	// Another server does not know the secrets in the log, nor a pod that does
	// not exist.
	l.open()
	l.until(first, func(s runtime.Status) bool { return strings.Contains(s.LogTail, "begun") })
	unknown, err := json.Marshal(map[string]any{"namespace": "weir-p-9", "pod": "ws-3-1", "workspace": 3, "generation": 1})
	if err != nil {
		l.Fatal(err)
	}
	l.until(unknown, ended)
	l.signalRun(spec)
	for _, state := range []runtime.State{first, second} {
		if err := l.Stop(l.Context(), state); err != nil {
			l.Error(err)
		}
		l.until(state, ended)
	}
}

// signalRun runs a command and ends it by a signal.
func (l *testRuntime) signalRun(spec runtime.Spec) {
	l.Helper()
	runs, err := kube.NewRuns(l.Runtime, l.TempDir())
	if err != nil {
		l.Fatal(err)
	}
	defer runs.Close()
	spec.Image = ""
	state, err := runs.Start(l.Context(), 1, spec, []string{"sleep", "600"})
	if err != nil {
		l.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	if err := wait.PollUntilContextCancel(ctx, pollPeriod, true, func(context.Context) (bool, error) {
		s, err := runs.Poll(ctx, state)
		if err != nil || s.Ended || s.Stage != "" { // before it runs, it needs no signal to end
			return s.Ended, err
		}
		return false, runs.Stop(ctx, state)
	}); err != nil {
		l.Fatal(err)
	}
}

func ended(s runtime.Status) bool { return s.Phase == runtime.PhaseExited }

func (l *testRuntime) start(spec runtime.Spec) runtime.State {
	l.Helper()
	state, err := l.Start(l.Context(), spec)
	if err != nil {
		l.Fatal(err)
	}
	return state
}

func (l *testRuntime) until(state runtime.State, ok func(runtime.Status) bool) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), patience)
	defer cancel()
	var s runtime.Status
	if err := wait.PollUntilContextCancel(ctx, pollPeriod, true, func(context.Context) (yes bool, err error) {
		s, err = l.Poll(ctx, state)
		return ok(s), err
	}); err != nil {
		l.Fatalf("%v: %+v", err, s)
	}
}
