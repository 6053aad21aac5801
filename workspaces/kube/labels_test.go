package kube

import (
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// A pod without its labels leaves the lister before its deletion is recorded: all its
// labels are restored even then, and after a restart those that are known.
func TestLabelsBeforeTheDeletionIsRecorded(t *testing.T) {
	for name, label := range map[string]string{"ws-1-1": labelWorkspace, "run-1": labelRun, "part-1-1": labelPart} {
		had := map[string]string{labelManagedBy: manager, labelInstance: "weir", labelProject: "7", label: "1", labelMember: "9"}
		if got := restored(t, name, had); !maps.Equal(got, had) {
			t.Errorf("the labels of %s are %v", name, got)
		}
		got := restored(t, name, nil)
		delete(had, labelMember)
		for label, value := range had {
			if got[label] != value {
				t.Errorf("the labels of %s are %v after a restart", name, got)
			}
		}
	}
}

// restored are the labels that a pod without any gets; had are those with which it was seen.
func restored(t *testing.T, name string, had map[string]string) map[string]string {
	t.Helper()
	stripped := corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "weir-p-7"}}
	var patched corev1.Pod
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			_ = json.NewDecoder(r.Body).Decode(&patched)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(stripped)
	}))
	defer api.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	r := &Runtime{client: client, log: slog.New(slog.DiscardHandler), now: time.Now, config: Config{Instance: "weir", Prefix: "weir-p-"},
		podLister: corelisters.NewPodLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})), deleted: map[ref]lastStatus{}, labels: map[ref]map[string]string{}}
	seen := stripped
	if seen.Labels = had; had != nil {
		r.recordLabels(&seen)
	}
	id, _ := r.config.idOf(&seen)
	if _, err := r.find(t.Context(), id); err != nil {
		t.Error(err)
	}
	return patched.Labels
}
