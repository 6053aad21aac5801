package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"weir/workspaces/runtime"
)

// watch starts the informers of the objects of this installation and of nodes, and
// returns when their initial lists are complete.
func (r *Runtime) watch(ctx context.Context) error {
	r.factory = informers.NewSharedInformerFactoryWithOptions(r.watchClient, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = r.config.selector() }),
		informers.WithTransform(dropManagedFields))
	core := r.factory.Core().V1()
	r.podLister, r.namespaceLister = core.Pods().Lister(), core.Namespaces().Lister()
	r.volumeLister, r.claimLister = core.PersistentVolumes().Lister(), core.PersistentVolumeClaims().Lister()
	if _, err := core.Pods().Informer().AddEventHandler(r.podHandler()); err != nil {
		return err
	}
	for _, informer := range []cache.SharedIndexInformer{
		core.Namespaces().Informer(), core.ResourceQuotas().Informer(), core.LimitRanges().Informer(), core.ConfigMaps().Informer(),
		core.PersistentVolumes().Informer(), core.PersistentVolumeClaims().Informer(),
		r.factory.Networking().V1().NetworkPolicies().Informer(),
	} {
		if _, err := informer.AddEventHandler(r.driftHandler()); err != nil {
			return err
		}
	}
	r.nodeFactory = informers.NewSharedInformerFactoryWithOptions(r.watchClient, 0, informers.WithTransform(stripNode))
	r.nodeLister = r.nodeFactory.Core().V1().Nodes().Lister()
	life, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	for _, factory := range []informers.SharedInformerFactory{r.factory, r.nodeFactory} {
		factory.Start(life.Done())
		for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
			if !synced {
				err := fmt.Errorf("the cluster did not list its %s within %s: may this account list and watch them?", kind, syncTimeout)
				return errors.Join(err, r.Close())
			}
		}
	}
	r.wg.Go(func() { r.repairDrift(life) })
	return nil
}

// dropManagedFields removes the managed fields, about half of an object.
func dropManagedFields(object any) (any, error) {
	if m, err := meta.Accessor(object); err == nil {
		m.SetManagedFields(nil)
	}
	return object, nil
}

// podHandler reports changes of workspaces, and records the last status of a pod.
func (r *Runtime) podHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if pod, ok := object.(*corev1.Pod); ok {
				r.recordLabels(pod)
			}
			r.notify(object)
		},
		UpdateFunc: func(before, after any) {
			old, now := describe(before.(*corev1.Pod), nil), describe(after.(*corev1.Pod), nil)
			if old.Phase != now.Phase || old.Message.String() != now.Message.String() {
				r.notify(after)
			}
		},
		DeleteFunc: func(object any) {
			last, missed := object.(cache.DeletedFinalStateUnknown)
			if missed {
				object = last.Obj
			}
			if pod, ok := object.(*corev1.Pod); ok {
				r.recordDeletion(pod, missed)
				r.notify(pod)
			}
		},
	}
}

func (r *Runtime) notify(object any) {
	if pod, ok := object.(*corev1.Pod); ok {
		if id, ok := r.config.refOf(pod); ok {
			r.Changed(id.Workspace)
		}
	}
}

// recordLabels records the labels of a pod, in case others remove them.
func (r *Runtime) recordLabels(pod *corev1.Pod) {
	if id, ok := r.config.idOf(pod); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.labels[id] = pod.Labels
	}
}

// recordDeletion records the status of a deleted pod for forgetAfter. A pod that was
// not stopped may only have lost its labels.
func (r *Runtime) recordDeletion(pod *corev1.Pod, missed bool) {
	id, ok := r.config.refOf(pod)
	if !ok {
		r.pods.Delete(pod.UID)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.stopping, pod.UID)
		if run, ok := r.config.idOf(pod); ok && pod.DeletionTimestamp != nil { // otherwise it has lost its labels
			delete(r.labels, run)
		}
		return
	}
	status := describe(pod, nil)
	if status.Phase != runtime.PhaseExited {
		status = runtime.Status{Phase: runtime.PhaseExited, ExitCode: -1, Limits: status.Limits, Message: endMessage(pod, nil)}
	}
	m := r.pods.entry(pod.UID)
	m.mu.Lock()
	status.LogTail = m.logTail
	m.mu.Unlock()
	r.pods.Delete(pod.UID)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	delete(r.stopping, pod.UID)
	delete(r.labels, id)
	maps.DeleteFunc(r.deleted, func(_ ref, f lastStatus) bool { return now.Sub(f.at) > forgetAfter })
	r.deleted[id] = lastStatus{status: status, at: now, unconfirmed: missed || pod.DeletionTimestamp == nil, labels: pod.Labels}
}
