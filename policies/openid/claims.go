package openid

import (
	"cmp"
	"encoding/json"

	"github.com/coreos/go-oidc/v3/oidc"

	"weir/policies"
)

// claims are the claims about a user, each as JSON.
type claims map[string]json.RawMessage

func (c claims) has(name string) bool { return len(c[name]) > 0 && string(c[name]) != "null" }

func (c claims) text(name string) (s string) {
	_ = json.Unmarshal(c[name], &s) // ignore other types
	return s
}

// boolean reads a boolean; some providers encode it as a string.
func (c claims) boolean(name string) bool {
	var b bool
	return json.Unmarshal(c[name], &b) == nil && b || c.text(name) == "true"
}

// list reads a list of strings, or one string. Other types are ignored, so that
// they grant no rights.
func (c claims) list(name string) (list []string) {
	if s := c.text(name); s != "" {
		return []string{s}
	}
	if json.Unmarshal(c[name], &list) != nil {
		return nil
	}
	return list
}

// add adds missing claims. An email and its verification must come from the same
// source.
func (c claims) add(more claims) {
	if !c.has("email") {
		delete(c, "email_verified")
	} else if more.text("email") != c.text("email") {
		delete(more, "email_verified")
	}
	for name, value := range more {
		if !c.has(name) {
			c[name] = value
		}
	}
}

func (c claims) assertion(id *oidc.IDToken, groups string) policies.Assertion {
	return policies.Assertion{Issuer: id.Issuer, Subject: id.Subject, Email: c.text("email"), Verified: c.boolean("email_verified"),
		Name: cmp.Or(c.text("name"), c.text("preferred_username")), Groups: c.list(groups)}
}
