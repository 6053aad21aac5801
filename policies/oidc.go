package policies

import (
	"slices"
	"strings"
	"unicode/utf8"

	"weir/models"
)

// Assertion is an identity provider's verified statement about a user.
type Assertion struct {
	Issuer   string
	Subject  string // permanent id of the user at the issuer
	Email    string
	Verified bool // the provider has verified the email
	Name     string
	Groups   []string
}

// SignInState is the state of a sign-in at an identity provider, bound to one browser.
// All of it is random; only State and hashes of the rest are in URLs.
type SignInState struct {
	Redirect string // the portal's callback URL
	State    string
	Nonce    string
	Verifier string // of PKCE, 43 to 128 characters
}

// ProviderRules decide which users of an identity provider may sign in, and their
// rights.
type ProviderRules struct {
	Name    string   // display name of the provider
	Domains []string // allowed domains of emails, in lower case; without subdomains
	Link    bool     // link an existing account with the same email
	Groups  []GroupRule
}

// GroupRule grants a group platform administration, or a role in a project, by
// name.
type GroupRule struct {
	Group   string
	Admin   bool
	Project string
	Role    string
}

// ProjectRole is a role in a project, both by name.
type ProjectRole struct{ Project, Role string }

// admit checks an assertion and returns the normalized email.
func (r ProviderRules) admit(as Assertion) (string, error) {
	var p models.Problems
	email := models.CheckEmail("email", as.Email, &p)
	_, domain, _ := strings.Cut(email, "@")
	switch {
	case as.Subject == "" || len(as.Subject) > 255:
		return "", models.Forbidden("%s did not identify you.", r.Name)
	// Letters that look or fold like others could make two emails equal.
	case len(p) > 0 || !ascii(as.Email):
		return "", models.Forbidden("%s did not provide a valid email address for you.", r.Name)
	case !as.Verified:
		return "", models.Forbidden("%s has not verified your email address %s. Verify it there, then sign in again.", r.Name, email)
	case !slices.Contains(r.Domains, domain):
		return "", models.Forbidden("Email addresses at %s cannot sign in.", domain)
	}
	return email, nil
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c >= utf8.RuneSelf }) < 0
}

// Owns reports whether the provider signs in the account with an address, which then
// needs no password here.
func (r *ProviderRules) Owns(email string) bool { return r.Creates(email) && r.Link }

// Creates reports whether an account for an address is created by signing in.
func (r *ProviderRules) Creates(email string) bool {
	_, domain, _ := strings.Cut(email, "@")
	return r != nil && slices.Contains(r.Domains, domain)
}

// admin reports whether one of the groups grants platform administration.
func (r ProviderRules) admin(groups []string) bool {
	return slices.ContainsFunc(r.Groups, func(g GroupRule) bool { return g.Admin && slices.Contains(groups, g.Group) })
}

// ProjectRoles lists the project roles of the groups, in the order of the rules.
func (r ProviderRules) ProjectRoles(groups []string) (places []ProjectRole) {
	for _, g := range r.Groups {
		if !g.Admin && slices.Contains(groups, g.Group) {
			places = append(places, ProjectRole{g.Project, g.Role})
		}
	}
	return places
}

// nameOf is the name of a new account: the provider's if valid, otherwise the
// local part of the email.
func nameOf(as Assertion, email string) string {
	var p models.Problems
	if name := models.CheckName("name", as.Name, &p); len(p) == 0 {
		return name
	}
	local, _, _ := strings.Cut(email, "@")
	return local[:min(len(local), 100)]
}
