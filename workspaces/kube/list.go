package kube

import (
	"context"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"weir/models"
	"weir/workspaces/runtime"
)

// List returns the running workspaces. It deletes pods that ended long ago and were
// not stopped.
func (r *Runtime) List(ctx context.Context) ([]runtime.Instance, error) {
	pods, err := r.podLister.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var all []runtime.Instance
	present := map[types.UID]bool{}
	for _, pod := range pods {
		present[pod.UID] = true
		if r.config.owns(pod) && !podEnded(pod) {
			r.ensureLater(pod)
		}
		id, ok := r.config.refOf(pod)
		switch {
		case !ok:
		case !podEnded(pod):
			all = append(all, runtime.Instance{Workspace: id.Workspace, Generation: id.Generation, State: id.state()})
		case r.isOrphan(pod):
			if err := r.Stop(ctx, id.state()); err != nil {
				return nil, err
			}
		}
	}
	r.pods.retain(present)
	return all, nil
}

// isOrphan reports whether the end of a pod was observed long ago.
func (r *Runtime) isOrphan(pod *corev1.Pod) bool {
	m, now := r.pods.entry(pod.UID), r.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.endedAt.IsZero() {
		m.endedAt = now
	}
	return now.Sub(m.endedAt) >= forgetAfter
}

// foreignName is the name of a pod of a workspace, a run or a part, of any generation.
var foreignName = regexp.MustCompile(`^((ws|part)-\d+-\d+|run-\d+)(-r\d+)?$`)

// Foreign finds the pods of workspaces, runs and parts that run under the labels of this
// installation, but for another owner.
func (r *Runtime) Foreign() ([]models.Foreign, error) {
	pods, err := r.podLister.List(labels.Everything())
	count := map[models.Foreign]int{}
	for _, pod := range pods {
		if _, own := r.config.idOf(pod); !own && !podEnded(pod) && foreignName.MatchString(pod.Name) {
			count[models.Foreign{Owner: pod.Labels[labelOwner], Place: pod.Namespace}]++
		}
	}
	return runtime.CountForeign(count), err
}
