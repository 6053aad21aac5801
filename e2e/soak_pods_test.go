//go:build cluster

package e2e

import (
	"context"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	corev1 "k8s.io/api/core/v1"

	"weir/tools/cluster"
)

// hello answers like a notebook that has just started, at a hundredth of the
// cost.
const hello = `
import http.server, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *args):
        pass
http.server.ThreadingHTTPServer(("", 8888), Hello).serve_forever()
`

// helloIn puts hello into the catalog.
func (s *server) helloIn(k *cluster.Cluster) int64 {
	s.t.Helper()
	var env id
	s.api(s.admin()).must("POST", "/environments", map[string]any{"name": "Hello", "language": "none", "language_version": "1",
		"image": k.Image, "command": []string{"/usr/bin/python3", "-c", hello}}, &env)
	return env.ID
}

// podStarts is which pods there were of each workspace.
type podStarts struct {
	mu   sync.Mutex
	pods map[string]map[types.UID]string // workspace → pods by name
}

// watchPods notes every pod of a workspace until the test ends.
func watchPods(t *testing.T, client *kubernetes.Clientset) *podStarts {
	t.Helper()
	s := &podStarts{pods: map[string]map[types.UID]string{}}
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	open := func() (apiwatch.Interface, error) {
		return client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{LabelSelector: "weir.dev/workspace"})
	}
	w, err := open()
	if err != nil {
		t.Fatal(err)
	}
	work.Go(func() {
		for ctx.Err() == nil && err == nil {
			for e := range w.ResultChan() {
				if pod, ok := e.Object.(*corev1.Pod); ok {
					s.note(pod)
				}
			}
			w, err = open() // begins with what there is
		}
	})
	t.Cleanup(func() { cancel(); work.Wait() })
	return s
}

func (s *podStarts) note(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	workspace := pod.Labels["weir.dev/workspace"]
	if s.pods[workspace] == nil {
		s.pods[workspace] = map[types.UID]string{}
	}
	s.pods[workspace][pod.UID] = pod.Name
}

// seen says that no pod has started, if that is so.
func (s *podStarts) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pods) == 0 {
		return "no pod was seen"
	}
	return ""
}

// check holds every workspace to one pod: each was started once.
func (s *podStarts) check(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for workspace, pods := range s.pods {
		if len(pods) != 1 {
			t.Errorf("workspace %s was launched as %d pods: %v", workspace, len(pods), pods)
		}
	}
}
