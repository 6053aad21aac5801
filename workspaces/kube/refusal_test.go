package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"weir/models"
)

// What may go better later is tried again, what will not is refused at once,
// and what may have been done is stopped.
func TestRefusals(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	forbidden := func(why string) error { return apierrors.NewForbidden(pods, "ws-5-2", errors.New(why)) }
	plainly := func(code int, text string) error {
		return apierrors.NewGenericServerResponse(code, "patch", pods, "ws-5-2", text, 0, true)
	}
	unread := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: "etcdserver: request timed out"}}
	terminating := apierrors.NewForbidden(pods, "ws-5-2", errors.New("unable to create new content in namespace weir-p-7 because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, test := range map[string]struct {
		err   error
		kind  models.Kind
		says  string
		acted bool
	}{
		"quota":       {forbidden("exceeded quota: weir, requested: pods=1, used: pods=4, limited: pods=4"), models.KindUnavailable, "resource quota in the cluster is exhausted.", false},
		"policy":      {forbidden("violates PodSecurity"), models.KindConflict, "rejected the pod: pods \"ws-5-2\" is forbidden: violates PodSecurity", false},
		"new quota":   {forbidden("status unknown for quota: weir, resources: limits.cpu"), models.KindUnavailable, "still preparing", false},
		"no account":  {forbidden(`error looking up service account weir-p-7/default: serviceaccount "default" not found`), models.KindUnavailable, "still preparing", false},
		"no rights":   {forbidden(`User "system:serviceaccount:weir:portal" cannot patch resource "pods"`), models.KindUnavailable, "does not allow the portal to do this: pods", false},
		"stranger":    {apierrors.NewUnauthorized("Unauthorized"), models.KindUnavailable, "does not allow the portal to do this: Unauthorized", false},
		"terminating": {terminating, models.KindUnavailable, "namespace in the cluster is being deleted", false},
		"removed":     {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "weir-p-7"), models.KindUnavailable, "namespace in the cluster was deleted", false},
		"contended":   {apierrors.NewConflict(pods, "ws-5-2", errors.New("the object has been modified")), models.KindUnavailable, "is not responding", false},
		"busy":        {apierrors.NewTooManyRequests("slow down", 1), models.KindUnavailable, "is not responding", false},
		"broken":      {apierrors.NewInternalError(errors.New("webhook")), models.KindUnavailable, "is not responding", true},
		"etcd":        {unread, models.KindUnavailable, "is not responding", true},
		"gateway":     {plainly(http.StatusBadGateway, "<html>"), models.KindUnavailable, "is not responding", true},
		"late":        {context.DeadlineExceeded, models.KindUnavailable, "is not responding", true},
		"unreachable": {&url.Error{Op: "Patch", URL: "https://10.0.0.1", Err: errors.New("connection refused")}, models.KindUnavailable, "is not responding", true},
		"cut short":   {fmt.Errorf("unexpected error when reading response body: %w", io.ErrUnexpectedEOF), models.KindUnavailable, "is not responding", true},
		"worded":      {models.NotFound("project"), models.KindNotFound, "The project was not found.", true},
	} {
		got := refusal(fmt.Errorf("wrapped: %w", test.err))
		if models.KindOf(got) != test.kind || !strings.Contains(got.Error(), test.says) {
			t.Errorf("%s: %s: %v", name, models.KindOf(got), got)
		}
		if acted := ambiguous(test.err); acted != test.acted {
			t.Errorf("%s: it may have been done: %t", name, acted)
		}
	}
	if err := refusal(nil); err != nil {
		t.Errorf("nothing: %v", err)
	}
}
