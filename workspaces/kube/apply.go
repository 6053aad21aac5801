package kube

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/cache"

	"weir/models"
	"weir/workspaces/runtime"
)

// applyOptions take the ownership of every field that is set.
var applyOptions = metav1.ApplyOptions{FieldManager: manager, Force: true}

// ensureProject applies the objects of a project if they are new, or were changed
// by others.
func (r *Runtime) ensureProject(ctx context.Context, id int64) error {
	quota := Quota{}
	if r.config.Quota != nil {
		var err error
		if quota, err = r.config.Quota(ctx, id); models.KindOf(err) == models.KindInternal {
			return models.Unavailable(err, "The project's quota cannot be read now. Try again in a moment.")
		} else if err != nil {
			return err
		}
	}
	p, err := r.config.projectObjects(id, quota)
	if err != nil {
		return err
	}
	wanted, err := digestOf(p)
	if err != nil {
		return err
	}
	a := r.projects.entry(id)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.digest == wanted {
		return nil
	}
	if a.wanted != wanted {
		a.digest, a.wanted, a.done = "", wanted, map[string]bool{}
	}
	if err := r.applyProject(ctx, p, a); err != nil {
		if isGone(err) {
			a.again()
		}
		return err
	}
	a.digest, a.wanted, a.done = wanted, "", nil
	return nil
}

// applyProject applies the objects in the order in which they need each other.
// Volumes are first and claims last: the volume controller binds a claim at once to
// a volume that it knows, and otherwise 15 seconds later.
func (r *Runtime) applyProject(ctx context.Context, p namespaceObjects, a *applied) error {
	cluster, ns := r.client.CoreV1(), *p.Namespace.Name
	for _, apply := range []func() error{
		func() error { return r.clearClaims(ctx, p.Volumes) },
		func() error { return applyEach(ctx, a, cluster.PersistentVolumes().Apply, p.Volumes...) },
		func() error { return applyEach(ctx, a, cluster.Namespaces().Apply, p.Namespace) },
		func() error { models.Failpoint("kube.namespace"); return nil },
		func() error { return applyEach(ctx, a, cluster.ResourceQuotas(ns).Apply, p.Quota) },
		func() error { return applyEach(ctx, a, cluster.LimitRanges(ns).Apply, p.Limits) },
		func() error {
			return applyEach(ctx, a, r.client.NetworkingV1().NetworkPolicies(ns).Apply, p.Policies...)
		},
		func() error { return applyEach(ctx, a, cluster.ConfigMaps(ns).Apply, p.Jupyter) },
		func() error { return applyEach(ctx, a, cluster.Services(ns).Apply, p.Services...) },
		func() error { r.awaitVolumes(ctx, p.Volumes); return nil },
		func() error { return applyEach(ctx, a, cluster.PersistentVolumeClaims(ns).Apply, p.Claims...) },
		func() error { return r.awaitClaims(ctx, ns, p.Claims) },
	} {
		if err := apply(); err != nil {
			return err
		}
	}
	return nil
}

// applyEach applies those objects of one kind that an earlier attempt has not, and records the API server's responses in a.
func applyEach[C any, O metav1.Object](ctx context.Context, a *applied, apply func(context.Context, C, metav1.ApplyOptions) (O, error),
	all ...C) error {
	for _, one := range all {
		digest, err := digestOf(one)
		if err != nil {
			return err
		}
		if a.done[digest] {
			continue
		}
		object, err := apply(ctx, one, applyOptions)
		if err != nil {
			return err
		}
		if a.objects[nameOf(object)], err = digestOf(appliedFields(object)); err != nil {
			return err
		}
		a.done[digest] = true
	}
	return nil
}

// clearClaims prepares released volumes for a new claim: when others have deleted a
// namespace, its volume refers to a claim that is gone. The resource version in
// the patch prevents that a volume that was bound again loses its claim.
func (r *Runtime) clearClaims(ctx context.Context, volumes []*core.PersistentVolumeApplyConfiguration) error {
	for _, volume := range volumes {
		v, err := r.volumeLister.Get(*volume.Name)
		if err != nil || !released(v) {
			continue
		}
		patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}`, v.ResourceVersion)
		_, err = r.client.CoreV1().PersistentVolumes().Patch(ctx, v.Name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{FieldManager: manager})
		if err != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// released reports whether an object is a volume whose claim is gone.
func released(object metav1.Object) bool {
	v, ok := object.(*corev1.PersistentVolume)
	return ok && v.Status.Phase == corev1.VolumeReleased
}

// awaitVolumes waits until the volume controller knows the volumes, or until
// volumeTimeout: claims also bind later.
func (r *Runtime) awaitVolumes(ctx context.Context, volumes []*core.PersistentVolumeApplyConfiguration) {
	_ = awaitEach(ctx, volumes, func(wanted *core.PersistentVolumeApplyConfiguration) bool {
		v, err := r.volumeLister.Get(*wanted.Name)
		return err == nil && v.Status.Phase != "" && v.Status.Phase != corev1.VolumePending
	})
}

// awaitClaims waits until the claims are bound to their volumes, with an error after volumeTimeout. The scheduler can
// miss that a claim is bound after it has seen a pod that needs it, and then looks at the pod five minutes later.
func (r *Runtime) awaitClaims(ctx context.Context, ns string, claims []*core.PersistentVolumeClaimApplyConfiguration) error {
	err := awaitEach(ctx, claims, func(wanted *core.PersistentVolumeClaimApplyConfiguration) bool {
		c, err := r.claimLister.PersistentVolumeClaims(ns).Get(*wanted.Name)
		return err == nil && c.Status.Phase == corev1.ClaimBound
	})
	if err != nil {
		if n, errGet := r.namespaceLister.Get(ns); errGet == nil && n.Status.Phase == corev1.NamespaceTerminating {
			return namespaceEnds(err) // with its claims
		}
		return models.Unavailable(err, "The volumes of the project's directories are not bound yet.")
	}
	return nil
}

// awaitEach waits until all are ready, with an error after volumeTimeout.
func awaitEach[T any](ctx context.Context, all []T, ready func(T) bool) error {
	return wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, volumeTimeout, true, func(context.Context) (bool, error) {
		return !slices.ContainsFunc(all, func(one T) bool { return !ready(one) }), nil
	})
}

// applyOwned applies the objects that a pod owns. The pod waits for its secret.
func (r *Runtime) applyOwned(ctx context.Context, spec runtime.Spec, pod *corev1.Pod) error {
	o := r.config.ownedObjects(spec, pod)
	m := r.pods.entry(pod.UID)
	m.mu.Lock()
	m.secrets = secretsOf(o.Secret.StringData)
	m.mu.Unlock()
	if err := r.applyWaited(ctx, pod, o); err != nil {
		return err
	}
	if _, err := r.client.CoreV1().Services(pod.Namespace).Apply(ctx, o.Service, applyOptions); err != nil {
		return err
	}
	if o.Ingress == nil {
		return nil
	}
	_, err := r.client.NetworkingV1().Ingresses(pod.Namespace).Apply(ctx, o.Ingress, applyOptions)
	return err
}

// applyWaited applies what a pod needs before its command starts: it waits for its secret.
func (r *Runtime) applyWaited(ctx context.Context, pod *corev1.Pod, o podOwned) error {
	if o.Policy != nil {
		if _, err := r.client.NetworkingV1().NetworkPolicies(pod.Namespace).Apply(ctx, o.Policy, applyOptions); err != nil {
			return err
		}
	}
	return r.applySecret(ctx, pod, o.Secret)
}

func (r *Runtime) applySecret(ctx context.Context, pod *corev1.Pod, secret *core.SecretApplyConfiguration) error {
	secrets := r.client.CoreV1().Secrets(pod.Namespace)
	_, err := secrets.Apply(ctx, secret, applyOptions)
	if apierrors.IsInvalid(err) { // it is immutable, and may exist with other values
		if _, missing := secrets.Get(ctx, pod.Name, metav1.GetOptions{}); missing == nil {
			err = nil
		}
	}
	return err
}

// driftHandler detects changes of a project's objects by others.
func (r *Runtime) driftHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, after any) { r.checkDrift(after, false) },
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			r.checkDrift(object, true)
		},
	}
}

// checkDrift marks a project if an object differs from what was applied. The lock
// excludes the changes of a current apply.
func (r *Runtime) checkDrift(object any, deleted bool) {
	o, ok := object.(metav1.Object)
	if !ok {
		return
	}
	id, err := strconv.ParseInt(o.GetLabels()[labelProject], 10, 64)
	if err != nil {
		return
	}
	entry, ok := r.projects.Load(id)
	if !ok {
		return // List has it applied, if something runs there
	}
	a := entry.(*applied)
	a.mu.Lock()
	defer a.mu.Unlock()
	now, err := digestOf(appliedFields(o))
	if known, ok := a.objects[nameOf(o)]; !ok || !deleted && err == nil && now == known && !released(o) {
		return
	}
	a.again()
	r.projects.enqueue(id) // or List does it
}

// ensureLater has the objects of a pod's project applied that this process has not applied yet:
// they may be those of an earlier version or configuration, or have been changed before it led.
func (r *Runtime) ensureLater(pod *corev1.Pod) {
	id, err := strconv.ParseInt(pod.Labels[labelProject], 10, 64)
	if err != nil {
		return
	}
	if entry, ok := r.projects.Load(id); ok {
		a := entry.(*applied)
		if !a.mu.TryLock() { // it is being applied
			return
		}
		done := a.digest != ""
		a.mu.Unlock()
		if done {
			return
		}
	}
	r.projects.enqueue(id)
}

// repairDrift applies again what others have changed, and what this process has not applied
// yet, at most once a second, in case two controllers disagree.
func (r *Runtime) repairDrift(ctx context.Context) {
	pause := time.NewTicker(time.Second)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-r.projects.drifted:
			r.repairProject(ctx, id)
		}
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

func (r *Runtime) repairProject(ctx context.Context, id int64) {
	r.projects.queued.Delete(id)
	ns, err := r.namespaceLister.Get(r.config.namespace(id))
	if err != nil || ns.DeletionTimestamp != nil {
		return // it is being deleted; the next start creates it again
	}
	if r.projects.changed(id) {
		r.log.WarnContext(ctx, "a project's objects in the cluster were changed by others; applying them again", "project", id)
	}
	within, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := r.ensureProject(within, id); err != nil && ctx.Err() == nil {
		r.log.ErrorContext(ctx, "cannot apply a project's objects", "project", id, "err", err)
	}
}

func nameOf(o metav1.Object) string {
	return fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())
}

// appliedFields returns the fields of an object that an apply sets, without those
// that the cluster sets.
func appliedFields(object metav1.Object) any {
	b, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	var fields struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec map[string]any `json:"spec"`
		Data map[string]any `json:"data"`
	}
	if json.Unmarshal(b, &fields) != nil {
		return nil
	}
	if claim, ok := fields.Spec["claimRef"].(map[string]any); ok { // completed when it is bound
		delete(claim, "uid")
		delete(claim, "resourceVersion")
	}
	delete(fields.Spec, "volumeName") // likewise, in the claim
	return fields
}

func digestOf(value any) (string, error) {
	b, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(b)), nil
}
