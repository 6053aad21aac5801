package policies

import (
	"slices"
	"strings"
	"unicode/utf8"

	"weir/models"
)

// Assertion is what a provider of sign-in says of a person. Whoever hands it
// over has checked that the provider said it, just now and to us.
type Assertion struct {
	Issuer   string
	Subject  string // names the person at the issuer, for ever
	Email    string
	Verified bool // the provider knows that the address is the person's
	Name     string
	Groups   []string
}

// Pass is what ties a browser that leaves to the one that comes back. All of
// it is random, and only State and hashes of the rest are shown on the way.
type Pass struct {
	Redirect string // the portal's address for who comes back
	State    string
	Nonce    string
	Verifier string // of PKCE, 43 to 128 characters
}

// ProviderRules say who may come from the provider, and as what.
type ProviderRules struct {
	Name    string   // of the provider, for people
	Domains []string // of the addresses that may come, in lower case; exact: not what lies below
	Link    bool     // an account with the same address becomes the person's
	Groups  []GroupRule
}

// GroupRule is what a group gives: the platform's administration, or a role
// in a project, by their names.
type GroupRule struct {
	Group   string
	Admin   bool
	Project string
	Role    string
}

// Place is a role in a project, by their names.
type Place struct{ Project, Role string }

// admit refuses whom the rules keep out, and returns the address in the form
// in which accounts have it.
func (r ProviderRules) admit(as Assertion) (string, error) {
	var p models.Problems
	email := models.CheckEmail("email", as.Email, &p)
	_, domain, _ := strings.Cut(email, "@")
	switch {
	case as.Subject == "" || len(as.Subject) > 255:
		return "", models.Forbidden("%s does not say who you are.", r.Name)
	// Letters that only look or fold like others would let one address pass
	// for another.
	case len(p) > 0 || !ascii(as.Email):
		return "", models.Forbidden("%s gives no e-mail address for you that can be used here.", r.Name)
	case !as.Verified:
		return "", models.Forbidden("%s has not verified your e-mail address %s. Verify it there, then sign in again.", r.Name, email)
	case !slices.Contains(r.Domains, domain):
		return "", models.Forbidden("Addresses at %s may not sign in here.", domain)
	}
	return email, nil
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c >= utf8.RuneSelf }) < 0
}

// admin tells whether one of the groups makes administrators.
func (r ProviderRules) admin(groups []string) bool {
	return slices.ContainsFunc(r.Groups, func(g GroupRule) bool { return g.Admin && slices.Contains(groups, g.Group) })
}

// Places are what the groups give in projects, in the order of the rules.
func (r ProviderRules) Places(groups []string) (places []Place) {
	for _, g := range r.Groups {
		if !g.Admin && slices.Contains(groups, g.Group) {
			places = append(places, Place{g.Project, g.Role})
		}
	}
	return places
}

// nameOf is how a new account is called: as the provider says if that can be
// a name, otherwise as its address begins.
func nameOf(as Assertion, email string) string {
	var p models.Problems
	if name := models.CheckName("name", as.Name, &p); len(p) == 0 {
		return name
	}
	local, _, _ := strings.Cut(email, "@")
	return local[:min(len(local), 100)]
}
