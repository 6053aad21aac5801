package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/cache"

	"weir/models"
	"weir/workspaces"
)

// applyOptions claim every field that we set.
var applyOptions = metav1.ApplyOptions{FieldManager: manager, Force: true}

// projects are the applied objects of the projects' namespaces.
type projects struct {
	mu      sync.Mutex
	all     map[int64]*applied
	drifted chan int64
}

// applied is what was applied for one project.
type applied struct {
	mu      sync.Mutex
	digest  string            // of what was applied; empty: apply it again
	objects map[string]string // digest of each object as the API server answered
}

func (p *projects) entry(id int64) *applied {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.all[id]
	if a == nil {
		a = &applied{objects: map[string]string{}}
		p.all[id] = a
	}
	return a
}

// invalidate has a project's objects applied again with its next start, when
// an error shows that its namespace has changed.
func (p *projects) invalidate(id int64, err error) {
	if !apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return
	}
	a := p.entry(id)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.digest = ""
}

// ensureProject sees to it that a project's namespace is as it shall be. It
// asks the API server only for what is new, or was changed by others.
func (r *Runtime) ensureProject(ctx context.Context, id int64) error {
	quota := Quota{}
	if r.config.Quota != nil {
		var err error
		if quota, err = r.config.Quota(ctx, id); models.KindOf(err) == models.KindInternal && err != nil {
			return models.Unavailable(err, "The project's quota cannot be read now. Try again in a moment.")
		} else if err != nil {
			return err
		}
	}
	p := r.config.projectObjects(id, quota)
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
	a.digest = ""
	if err := r.applyProject(ctx, p, a); err != nil {
		return err
	}
	a.digest = wanted
	return nil
}

// applyProject applies one object after another, as later ones need earlier.
// Volumes come first and claims last: the cluster's controller binds a claim
// at once to a volume that it has seen, and to another a quarter of a minute
// later.
func (r *Runtime) applyProject(ctx context.Context, p namespaceObjects, a *applied) error {
	cluster, ns := r.client.CoreV1(), *p.Namespace.Name
	for _, volume := range p.Volumes {
		if err := r.clearClaim(ctx, *volume.Name); err != nil {
			return err
		}
		if err := recordApplied(a)(cluster.PersistentVolumes().Apply(ctx, volume, applyOptions)); err != nil {
			return err
		}
	}
	if err := recordApplied(a)(cluster.Namespaces().Apply(ctx, p.Namespace, applyOptions)); err != nil {
		return err
	}
	models.Failpoint("kube.namespace")
	if err := recordApplied(a)(cluster.ResourceQuotas(ns).Apply(ctx, p.Quota, applyOptions)); err != nil {
		return err
	}
	if err := recordApplied(a)(cluster.LimitRanges(ns).Apply(ctx, p.Limits, applyOptions)); err != nil {
		return err
	}
	for _, policy := range p.Policies {
		if err := recordApplied(a)(r.client.NetworkingV1().NetworkPolicies(ns).Apply(ctx, policy, applyOptions)); err != nil {
			return err
		}
	}
	if err := recordApplied(a)(cluster.ConfigMaps(ns).Apply(ctx, p.Jupyter, applyOptions)); err != nil {
		return err
	}
	if p.Portal != nil {
		if _, err := cluster.Services(ns).Apply(ctx, p.Portal, applyOptions); err != nil {
			return err
		}
	}
	r.awaitVolumes(ctx, p.Volumes)
	for _, claim := range p.Claims {
		if err := recordApplied(a)(cluster.PersistentVolumeClaims(ns).Apply(ctx, claim, applyOptions)); err != nil {
			return err
		}
	}
	return nil
}

// clearClaim makes a volume ready for a new claim, when somebody has removed the
// namespace with the old one: the cluster keeps it for a claim that is gone.
// Only the volume as it was seen is changed: one that has been bound again
// since would lose its claim for good. The informer brings the newer one.
func (r *Runtime) clearClaim(ctx context.Context, volume string) error {
	v, err := r.volumeLister.Get(volume)
	if err != nil || !released(v) {
		return nil // there is none, or nothing to do
	}
	patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}`, v.ResourceVersion)
	_, err = r.client.CoreV1().PersistentVolumes().Patch(ctx, volume, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager})
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// released reports whether an object is a volume whose claim is gone.
func released(object metav1.Object) bool {
	v, ok := object.(*corev1.PersistentVolume)
	return ok && v.Status.Phase == corev1.VolumeReleased
}

// awaitVolumes waits until the cluster's controller has seen the volumes, but
// not long: a claim also binds later.
func (r *Runtime) awaitVolumes(ctx context.Context, volumes []*core.PersistentVolumeApplyConfiguration) {
	ctx, cancel := context.WithTimeout(ctx, volumeTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for _, wanted := range volumes {
		for !r.seenByController(*wanted.Name) {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}
}

func (r *Runtime) seenByController(volume string) bool {
	v, err := r.volumeLister.Get(volume)
	return err == nil && v.Status.Phase != "" && v.Status.Phase != corev1.VolumePending
}

// recordApplied notes what the API server made of an object.
func recordApplied(a *applied) func(metav1.Object, error) error {
	return func(object metav1.Object, err error) error {
		if err != nil {
			return err
		}
		a.objects[nameOf(object)], err = digestOf(appliedFields(object))
		return err
	}
}

// applyOwned applies what goes with a pod. The pod waits for its secret.
func (r *Runtime) applyOwned(ctx context.Context, spec workspaces.Spec, pod *corev1.Pod) error {
	o := r.config.ownedObjects(spec, pod.UID)
	m := r.pods.entry(pod.UID)
	m.mu.Lock()
	m.secrets = secretsOf(o.Secret.StringData)
	m.mu.Unlock()
	secrets := r.client.CoreV1().Secrets(pod.Namespace)
	_, err := secrets.Apply(ctx, o.Secret, applyOptions)
	if apierrors.IsInvalid(err) { // it may be there with other values: what runs keeps them
		if _, missing := secrets.Get(ctx, pod.Name, metav1.GetOptions{}); missing == nil {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	if _, err := r.client.CoreV1().Services(pod.Namespace).Apply(ctx, o.Service, applyOptions); err != nil {
		return err
	}
	if o.Ingress == nil {
		return nil
	}
	_, err = r.client.NetworkingV1().Ingresses(pod.Namespace).Apply(ctx, o.Ingress, applyOptions)
	return err
}

// RemoveProject removes a project's namespace with all that is in it, and its
// volumes; the files stay. It does not wait for the end.
func (r *Runtime) RemoveProject(ctx context.Context, id int64) error {
	r.projects.mu.Lock()
	delete(r.projects.all, id)
	r.projects.mu.Unlock()
	err := r.client.CoreV1().Namespaces().Delete(ctx, r.config.namespace(id), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return r.client.CoreV1().PersistentVolumes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{
		LabelSelector: r.config.selector() + "," + labelProject + "=" + strconv.FormatInt(id, 10)})
}

// driftHandler notices what others change of a project's objects.
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

// checkDrift marks a project whose object is no longer as it was applied. It
// waits for an apply under way, whose own changes are none.
func (r *Runtime) checkDrift(object any, deleted bool) {
	o, ok := object.(metav1.Object)
	if !ok {
		return
	}
	id, err := strconv.ParseInt(o.GetLabels()[labelProject], 10, 64)
	if err != nil {
		return
	}
	r.projects.mu.Lock()
	a := r.projects.all[id]
	r.projects.mu.Unlock()
	if a == nil {
		return // nothing was started there by this process
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now, err := digestOf(appliedFields(o))
	if known, ok := a.objects[nameOf(o)]; !ok || !deleted && err == nil && now == known && !released(o) {
		return
	}
	a.digest = ""
	select {
	case r.projects.drifted <- id:
	default: // the next start applies it
	}
}

// repairDrift applies again what others have changed, at most once a second:
// two controllers may disagree.
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
	ns, err := r.namespaceLister.Get(r.config.namespace(id))
	if err != nil || ns.DeletionTimestamp != nil {
		return // somebody removes it; the next start makes it again
	}
	r.log.WarnContext(ctx, "a project's objects in the cluster were changed by others; applying them again", "project", id)
	within, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := r.ensureProject(within, id); err != nil && ctx.Err() == nil {
		r.log.ErrorContext(ctx, "cannot apply a project's objects", "project", id, "err", err)
	}
}

func nameOf(o metav1.Object) string {
	return fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName())
}

// appliedFields is what an object asks for, without what the cluster notes in it.
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
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
