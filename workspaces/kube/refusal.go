package kube

import (
	"errors"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"weir/models"
)

// refusal turns an error of the cluster into one for people: of kind unavailable if a
// retry may succeed, otherwise a conflict. A models.Error is returned unchanged.
func refusal(err error) error {
	status, answered := statusOfError(err)
	switch _, readable := errors.AsType[*models.Error](err); {
	case err == nil || readable:
		return err
	case !answered, busy(status.code), status.code == http.StatusConflict:
		return models.Unavailable(err, "The cluster is not responding.")
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return namespaceEnds(err)
	case status.code == http.StatusNotFound:
		return models.Unavailable(err, "The project's namespace in the cluster was deleted and is being recreated.")
	case exceedsQuota(err):
		// The pool enforces the same quota; the cluster counts ended pods for longer.
		return models.Unavailable(err, "The project's resource quota in the cluster is exhausted.")
	case namespaceMissing(err):
		return models.Unavailable(err, "The cluster is still preparing the project's namespace.")
	case status.code == http.StatusUnauthorized, lacksRights(err):
		return models.Unavailable(err, "The cluster does not allow the portal to do this: %s", oneLine(status.message))
	}
	e := models.Conflict("The cluster rejected the pod: %s", oneLine(status.message))
	e.Err = err
	return e
}

func namespaceEnds(err error) error {
	return models.Unavailable(err, "The project's namespace in the cluster is being deleted. The pod starts when the deletion is complete.")
}

// apiStatus is the response of the API server, or of a proxy before it.
type apiStatus struct {
	code    int
	message string
}

func statusOfError(err error) (apiStatus, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return apiStatus{}, false
	}
	return apiStatus{int(status.Status().Code), status.Status().Message}, true
}

// ambiguous reports whether the API server may have executed a failed request.
func ambiguous(err error) bool {
	status, answered := statusOfError(err)
	return !answered || status.code >= http.StatusInternalServerError
}

// The API server has no machine-readable reason for these.

// exceedsQuota reports whether a ResourceQuota was exceeded.
func exceedsQuota(err error) bool { return forbiddenFor(err, "exceeded quota") }

// namespaceMissing reports whether the controllers have not processed a new namespace yet.
func namespaceMissing(err error) bool {
	return forbiddenFor(err, "status unknown for quota") || forbiddenFor(err, "error looking up service account")
}

// lacksRights reports whether permissions are missing, also because an API server
// that has just started has not read them yet.
func lacksRights(err error) bool { return forbiddenFor(err, `User "`) }

func forbiddenFor(err error, words string) bool {
	return err != nil && apierrors.IsForbidden(err) && strings.Contains(err.Error(), words)
}
