package deploy

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Applier applies objects like “kubectl apply --server-side”.
type Applier struct {
	client dynamic.Interface
	kinds  []*restmapper.APIGroupResources
}

// NewApplier discovers the kinds of a cluster.
func NewApplier(c *rest.Config) (*Applier, error) {
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(c)
	if err != nil {
		return nil, err
	}
	kinds, err := restmapper.GetAPIGroupResources(d)
	return &Applier{client, kinds}, err
}

// at returns the resource interface of an object.
func (a *Applier) at(object runtime.Object) (dynamic.ResourceInterface, *unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, nil, err
	}
	u := &unstructured.Unstructured{Object: fields}
	unstructured.RemoveNestedField(u.Object, "status")
	kind := u.GroupVersionKind()
	mapping, err := restmapper.NewDiscoveryRESTMapper(a.kinds).RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, nil, err
	}
	if u.GetNamespace() != "" {
		return a.client.Resource(mapping.Resource).Namespace(u.GetNamespace()), u, nil
	}
	return a.client.Resource(mapping.Resource), u, nil
}

// Apply applies objects in their order.
func (a *Applier) Apply(ctx context.Context, all ...runtime.Object) error {
	for _, object := range all {
		at, u, err := a.at(object)
		if err == nil {
			_, err = at.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: "weir-deploy", Force: true})
		}
		if err != nil {
			return fmt.Errorf("applying %T: %w", object, err)
		}
	}
	return nil
}

// Delete deletes objects, and returns when they are gone or ctx ends.
func (a *Applier) Delete(ctx context.Context, all ...runtime.Object) error {
	var failed []error
	for _, object := range all {
		at, u, err := a.at(object)
		if err == nil {
			err = at.Delete(ctx, u.GetName(), metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, fmt.Errorf("deleting %T: %w", object, err))
		}
	}
	for _, object := range all {
		failed = append(failed, a.gone(ctx, object))
	}
	return errors.Join(failed...)
}

func (a *Applier) gone(ctx context.Context, object runtime.Object) error {
	at, u, err := a.at(object)
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, pollPeriod, true, func(ctx context.Context) (bool, error) {
		_, err := at.Get(ctx, u.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

const pollPeriod = 50 * time.Millisecond

// account returns the objects that grant and limit the portal's rights.
func account(all []runtime.Object, release string) (some []runtime.Object) {
	for _, object := range all {
		switch o := object.(type) {
		case *corev1.Namespace, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding,
			*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding:
			some = append(some, object)
		case *corev1.ServiceAccount:
			if o.Namespace == release {
				some = append(some, object)
			}
		}
	}
	return some
}

// tokenLife exceeds the duration of every test.
const tokenLife = 2 * time.Hour

// Portal applies the objects of the portal's account from the chart with values, and
// returns a configuration with the access of its pods. The caller must delete the
// objects.
func Portal(ctx context.Context, admin *rest.Config, release string, values ...string) (*rest.Config, []runtime.Object, error) {
	text, err := Render(ctx, release, append(values, "createNamespace=true", "agents.createNamespace=false")...)
	if err != nil {
		return nil, nil, err
	}
	all, err := Objects(text)
	if err != nil {
		return nil, nil, err
	}
	all = account(all, release)
	applier, err := NewApplier(admin)
	if err == nil {
		err = applier.Apply(ctx, all...)
	}
	if err != nil {
		return nil, all, err
	}
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, all, err
	}
	token, err := client.CoreV1().ServiceAccounts(release).CreateToken(ctx, release,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenLife.Seconds()))}},
		metav1.CreateOptions{})
	if err != nil {
		return nil, all, err
	}
	portal := rest.AnonymousClientConfig(admin)
	portal.BearerToken = token.Status.Token
	return portal, all, awaitRights(ctx, portal)
}

// awaitRights waits until the API server applies the account's role.
func awaitRights(ctx context.Context, portal *rest.Config) error {
	client, err := kubernetes.NewForConfig(portal)
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, pollPeriod, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Resource: "nodes", Verb: "watch"}}}
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil && answer.Status.Allowed, err
	})
}
