package kube

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir/models"
)

// Audience is the audience of the tokens of the agents' pods. The API server rejects
// tokens with it, and [Runtime.NodeOf] those without it.
const Audience = "weir"

// reviewTimeout is the timeout of a token review.
const reviewTimeout = 5 * time.Second

// Claims of the token of a pod; the node is one since Kubernetes 1.32.
const (
	extraPod  = "authentication.kubernetes.io/pod-name"
	extraNode = "authentication.kubernetes.io/node-name"
)

// NodeOf returns the node of the pod to which a token is bound. The token must be of
// this service account (namespace/name) and for [Audience]. The cluster reviews it,
// so that it expires with its pod. Other tokens are errors of kind unauthenticated;
// without a response of the cluster, the error is of kind unavailable.
func (r *Runtime) NodeOf(ctx context.Context, account, token string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{Audience}}}
	answer, err := r.client.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return "", models.Unavailable(err, "The cluster cannot verify tokens now.")
	}
	return nodeIn(answer.Status, account)
}

// nodeIn returns the node in the cluster's review of a token.
func nodeIn(s authenticationv1.TokenReviewStatus, account string) (string, error) {
	switch {
	case !s.Authenticated || !slices.Contains(s.Audiences, Audience):
		return "", unauthenticated(s.Error, models.Say("The cluster rejected this token: it is not for the audience %s, it has expired, or its pod has ended.", Audience))
	case s.User.Username != "system:serviceaccount:"+strings.Replace(account, "/", ":", 1):
		return "", unauthenticated("", models.Say("This token belongs to %s, but the agents of this cluster run as the service account %s.",
			s.User.Username, account))
	}
	pod, node := singleValue(s.User.Extra[extraPod]), singleValue(s.User.Extra[extraNode])
	if pod == "" || node == "" {
		return "", unauthenticated("", models.Say("This token is not bound to a pod on a node. Use a projected token in a pod, on Kubernetes 1.32 or later."))
	}
	return node, nil
}

// singleValue is the single value of a claim.
func singleValue(values authenticationv1.ExtraValue) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

// unauthenticated returns the error of a token; the cluster's reason is for the log.
func unauthenticated(reason string, why models.Text) error {
	e := &models.Error{Kind: models.KindUnauthenticated, Message: why}
	if reason != "" {
		e.Err = errors.New(reason)
	}
	return e
}
