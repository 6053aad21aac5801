package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"weir/models"
	"weir/policies"
	"weir/policies/openid"
)

// oidcSettings are the settings of sign-in with an identity provider.
var oidcSettings = []setting{
	{name: "oidc-issuer", kind: "URL",
		help: "issuer URL of an OpenID Connect provider to sign in with, exactly as the provider states it",
		set:  into(func(c *Config) *string { return &c.OIDC.Issuer }, optional(parseIssuer))},
	{name: "oidc-client-id", kind: "ID",
		help: "client ID of the portal at the provider",
		set:  into(func(c *Config) *string { return &c.OIDC.ClientID }, anyText)},
	{name: "oidc-client-secret-file", kind: "FILE",
		help: "file with the client secret (default none, for a public client)",
		set:  into(func(c *Config) *string { return &c.OIDC.SecretFile }, parseDir)},
	{name: "oidc-name", kind: "NAME",
		help: "display name of the provider (default its host)",
		set:  into(func(c *Config) *string { return &c.OIDC.Name }, optional(parseShownName))},
	{name: "oidc-domains", kind: "DOMAIN,...",
		help: "domains of the email addresses that may sign in; subdomains are not included",
		set:  into(func(c *Config) *[]string { return &c.OIDC.Domains }, listOf(parseDomain))},
	{name: "oidc-link", kind: "BOOL", defaultText: "false",
		help: "sign in to an existing account with the same verified email address",
		set:  into(func(c *Config) *bool { return &c.OIDC.Link }, parseBool)},
	{name: "oidc-groups-claim", kind: "NAME", defaultText: "groups",
		help: "claim with the groups of a user",
		set:  into(func(c *Config) *string { return &c.OIDC.GroupsClaim }, anyText)},
	{name: "oidc-groups", kind: "GROUP=RIGHT;...",
		help: "what the members of a group get: administrator, or PROJECT:ROLE; of several roles in a project, the first that fits",
		set:  into(func(c *Config) *[]policies.GroupRule { return &c.OIDC.Groups }, parseGroups)},
	{name: "oidc-session-max", kind: "DURATION", defaultText: "12h",
		help: "maximum duration of a sign-in with the provider; session-lifetime also applies",
		set:  into(func(c *Config) *time.Duration { return &c.OIDC.SessionMax }, durationFrom(time.Minute))},
}

func parseIssuer(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || !openid.SafeAddress(text) || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%q must be an https:// URL, or http:// on this machine, without a query and a fragment", text)
	}
	return text, nil
}

func parseShownName(text string) (string, error) {
	var p models.Problems
	name := models.CheckName("name", text, &p)
	if len(p) > 0 {
		return "", errors.New(p[0].Reason.String())
	}
	return name, nil
}

const groupAdministrator = "administrator"

// parseGroups parses rules separated by semicolons or line ends, because names of
// groups often contain commas and equal signs.
func parseGroups(text string) (rules []policies.GroupRule, err error) {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		rule, err := parseGroup(part)
		if err != nil {
			return nil, err
		}
		if slices.Contains(rules, rule) {
			return nil, fmt.Errorf("%q is listed more than once", part)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func parseGroup(text string) (policies.GroupRule, error) {
	at := strings.LastIndex(text, "=")
	group, right := strings.TrimSpace(text[:max(at, 0)]), strings.TrimSpace(text[at+1:])
	if group == "" {
		return policies.GroupRule{}, fmt.Errorf("%q must be a group and what it gives, such as staff=%s or vision=PROJECT:ROLE", text,
			groupAdministrator)
	}
	if right == groupAdministrator {
		return policies.GroupRule{Group: group, Admin: true}, nil
	}
	colon := strings.LastIndex(right, ":")
	project, role := strings.TrimSpace(right[:max(colon, 0)]), strings.TrimSpace(right[colon+1:])
	if project == "" || role == "" {
		return policies.GroupRule{}, fmt.Errorf("%q must give %s, or PROJECT:ROLE", text, groupAdministrator)
	}
	return policies.GroupRule{Group: group, Project: project, Role: role}, nil
}

// completeOIDC reads the secret and checks settings against each other.
func (c *Config) completeOIDC() (p problems) {
	o := &c.OIDC
	if o.Issuer == "" {
		p.require(o.ClientID == "", "oidc-client-id: requires oidc-issuer")
		p.require(o.SecretFile == "", "oidc-client-secret-file: requires oidc-issuer")
		p.require(len(o.Domains) == 0, "oidc-domains: requires oidc-issuer")
		p.require(len(o.Groups) == 0, "oidc-groups: requires oidc-issuer")
		p.require(!o.Link, "oidc-link: requires oidc-issuer")
		return p
	}
	p.require(o.ClientID != "", "oidc-client-id: is required with oidc-issuer")
	p.require(len(o.Domains) > 0, "oidc-domains: is required with oidc-issuer")
	p.require(len(o.Groups) == 0 || o.GroupsClaim != "", "oidc-groups-claim: is required with oidc-groups")
	if o.SecretFile != "" {
		secret, err := readSecret(o.SecretFile)
		o.ClientSecret = secret
		p.require(err == nil, fmt.Sprint("oidc-client-secret-file: ", err))
	}
	if u, err := url.Parse(o.Issuer); err == nil && o.Name == "" {
		o.Name = u.Hostname()
	}
	return p
}

// completeMetrics reads the token of scrapers.
func (c *Config) completeMetrics() (p problems) {
	if c.MetricsFile == "" {
		return nil
	}
	token, err := readSecret(c.MetricsFile)
	if err == nil && len(token) < 16 {
		err = errors.New(c.MetricsFile + " must contain at least 16 characters")
	}
	c.MetricsToken = token
	p.require(err == nil, fmt.Sprint("metrics-token-file: ", err))
	return p
}

// readSecret reads a file with a secret.
func readSecret(file string) (string, error) {
	b, err := os.ReadFile(file)
	secret := strings.TrimSpace(string(b))
	if err == nil && secret == "" {
		err = errors.New(file + " is empty")
	}
	return secret, err
}
