package kube

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podCache caches by UID what was read of each pod from the API server.
type podCache struct{ sync.Map }

// cachedPod is what is cached of one pod in addition to the informer.
type cachedPod struct {
	mu       sync.Mutex // locked during requests to the API server
	secrets  []string   // to be masked; nil: unknown
	logTail  string
	readAt   time.Time // when the tail was read
	complete bool      // the tail is complete
	answered bool      // the notebook has responded

	events   []corev1.Event
	eventsAt time.Time // when the events were read

	endedAt time.Time // when the end was first observed
}

func (m *podCache) entry(pod types.UID) *cachedPod {
	p, _ := m.LoadOrStore(pod, &cachedPod{})
	return p.(*cachedPod)
}

// retain deletes all other pods.
func (m *podCache) retain(pods map[types.UID]bool) {
	for pod := range m.Range {
		if !pods[pod.(types.UID)] {
			m.Delete(pod)
		}
	}
}
