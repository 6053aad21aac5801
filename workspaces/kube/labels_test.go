package kube

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
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
// labels are restored even then.
func TestLabelsBeforeTheDeletionIsRecorded(t *testing.T) {
	stripped := corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "ws-1-1", Namespace: "weir-p-7"}}
	patched := ""
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			body, _ := io.ReadAll(r.Body)
			patched = string(body)
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
	seen.Labels = map[string]string{labelManagedBy: manager, labelInstance: "weir", labelMember: "9"}
	r.recordLabels(&seen)
	id, _ := r.config.refOf(&seen)
	if _, err := r.find(t.Context(), id); err != nil || !strings.Contains(patched, `"weir.dev/member":"9"`) {
		t.Errorf("patched %s, %v", patched, err)
	}
}
