package kube

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"weir/models"
)

func TestNodeIn(t *testing.T) {
	good := func() authenticationv1.TokenReviewStatus {
		return authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: []string{Audience}, User: authenticationv1.UserInfo{
			Username: "system:serviceaccount:weir:agent",
			Extra:    map[string]authenticationv1.ExtraValue{extraPod: {"agent-x"}, extraNode: {"node-1"}}}}
	}
	if node, err := nodeIn(good(), "weir/agent"); err != nil || node != "node-1" {
		t.Errorf("%q, %v", node, err)
	}
	for name, change := range map[string]func(s *authenticationv1.TokenReviewStatus){
		"not authenticated":  func(s *authenticationv1.TokenReviewStatus) { s.Authenticated = false },
		"no audience":        func(s *authenticationv1.TokenReviewStatus) { s.Audiences = nil },
		"another audience":   func(s *authenticationv1.TokenReviewStatus) { s.Audiences = []string{"https://kubernetes.default.svc"} },
		"another account":    func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "system:serviceaccount:weir:portal" },
		"another namespace":  func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "system:serviceaccount:default:agent" },
		"an account between": func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "system:serviceaccount:weir:agent:x" },
		"a person":           func(s *authenticationv1.TokenReviewStatus) { s.User.Username = "agent" },
		"no pod":             func(s *authenticationv1.TokenReviewStatus) { delete(s.User.Extra, extraPod) },
		"no node":            func(s *authenticationv1.TokenReviewStatus) { delete(s.User.Extra, extraNode) },
		"an empty node":      func(s *authenticationv1.TokenReviewStatus) { s.User.Extra[extraNode] = authenticationv1.ExtraValue{""} },
		"two nodes": func(s *authenticationv1.TokenReviewStatus) {
			s.User.Extra[extraNode] = authenticationv1.ExtraValue{"node-1", "node-2"}
		},
	} {
		s := good()
		change(&s)
		if node, err := nodeIn(s, "weir/agent"); node != "" || models.KindOf(err) != models.KindUnauthenticated {
			t.Errorf("%s: %q, %v", name, node, err)
		}
	}
}
