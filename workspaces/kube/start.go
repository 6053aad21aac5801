package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	core "k8s.io/client-go/applyconfigurations/core/v1"

	"weir/models"
	"weir/workspaces/runtime"
)

// Start launches spec; see [runtime.Runtime]. It returns when the pod is created.
// Errors for people are of kind conflict, or of kind unavailable if a retry may
// succeed. The state is also returned with an error if the pod may exist.
func (r *Runtime) Start(ctx context.Context, spec runtime.Spec) (runtime.State, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	object, err := r.config.podObject(spec)
	if err != nil {
		return nil, err
	}
	id := r.config.ref(spec)
	pod, uncertain, err := r.createPod(ctx, id, spec.Project, object)
	if uncertain {
		return id.state(), refusal(err)
	}
	if err != nil {
		return nil, refusal(err)
	}
	models.Failpoint("kube.pod")
	err = r.applyOwned(ctx, spec, pod)
	models.Failpoint("kube.secret")
	return id.state(), refusal(err)
}

// createPod returns a pod of a project, and creates it if it does not exist. With an error,
// uncertain says that the pod may exist.
func (r *Runtime) createPod(ctx context.Context, id ref, project int64, object *core.PodApplyConfiguration) (
	pod *corev1.Pod, uncertain bool, err error) {
	if err := r.ensureProject(ctx, project); err != nil {
		return nil, false, err
	}
	if pod, err = r.ensurePod(ctx, id, object); err != nil {
		r.projects.invalidate(project, err)
		return nil, ambiguous(err), err
	}
	return pod, false, nil
}

// ensurePod returns the pod of a start, and creates it if it does not exist.
func (r *Runtime) ensurePod(ctx context.Context, id ref, object *core.PodApplyConfiguration) (*corev1.Pod, error) {
	pods := r.client.CoreV1().Pods(id.Namespace)
	pod, err := r.podLister.Pods(id.Namespace).Get(id.Pod)
	if err == nil && !r.config.owns(pod) {
		return nil, models.Conflict("The cluster runs %s in %s for another installation.", id.Pod, id.Namespace)
	}
	if !apierrors.IsNotFound(err) {
		return pod, err
	}
	r.mu.Lock()
	delete(r.deleted, id)
	r.mu.Unlock()
	pod, err = pods.Apply(ctx, object, applyOptions)
	if apierrors.IsInvalid(err) { // it may exist, created with another configuration
		if found, missing := pods.Get(ctx, id.Pod, metav1.GetOptions{}); missing == nil {
			return found, nil
		}
	}
	return pod, err
}

// StateOf returns the state of a start; see [runtime.Namer].
func (r *Runtime) StateOf(project, workspace, generation int64) runtime.State {
	return r.config.ref(runtime.Spec{Project: project, Workspace: workspace, Generation: generation}).state()
}
