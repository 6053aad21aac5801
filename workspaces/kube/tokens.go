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

// Audience is for whom the tokens of the agents' pods are made. The API server
// takes no token with it, and [Runtime.NodeOf] none without it.
const Audience = "weir"

// reviewTimeout is how long the cluster may take to judge a token.
const reviewTimeout = 5 * time.Second

// What the API server puts into the token of a pod, since Kubernetes 1.32 with
// the node.
const (
	extraPod  = "authentication.kubernetes.io/pod-name"
	extraNode = "authentication.kubernetes.io/node-name"
)

// NodeOf is the name of the node on which a pod runs that shows a token: of
// this service account (namespace/name), for [Audience], bound to the pod. The
// cluster itself judges it, so that a token ends with its pod. A token that is
// something else is unauthenticated; where the cluster cannot be asked the
// error is unavailable.
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

// nodeIn reads the node from what the cluster says of a token.
func nodeIn(s authenticationv1.TokenReviewStatus, account string) (string, error) {
	switch {
	case !s.Authenticated || !slices.Contains(s.Audiences, Audience):
		return "", unauthenticated(s.Error, models.Say("The cluster rejected this token: it is not for the audience %s, it has expired, or its pod has ended.", Audience))
	case s.User.Username != "system:serviceaccount:"+strings.Replace(account, "/", ":", 1):
		return "", unauthenticated("", models.Say("This token belongs to %s, but the agents of this cluster run as the service account %s.", s.User.Username, account))
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

// unauthenticated refuses a token; the cluster's reason is for the log.
func unauthenticated(reason string, why models.Text) error {
	e := &models.Error{Kind: models.KindUnauthenticated, Message: why}
	if reason != "" {
		e.Err = errors.New(reason)
	}
	return e
}
