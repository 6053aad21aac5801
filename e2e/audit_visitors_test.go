package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"

	"weir/policies/openid/openidtest"
)

// signsIn returns a browser with a session, whose requests follow no redirects.
func (a *auditor) signsIn(s *server, email string) *http.Client {
	a.t.Helper()
	client := s.browser()
	client.Timeout = 0
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.PostForm(s.url+"/signin", url.Values{"email": {email}, "password": {password}})
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		a.t.Fatalf("%s signs in: %s", email, res.Status)
	}
	return client
}

// visitor makes a person with a workspace that starts.
func (a *auditor) visitor() (v auditee) {
	a.t.Helper()
	s := a.servers[0]
	a.people++
	name := fmt.Sprintf("visitor%d", a.people)
	v = auditee{project: a.project}
	v.Email, v.Name = name+"@example.org", name
	admin, at := a.admin(s), fmt.Sprintf("/projects/%d", a.project)
	var role, place, service id
	var token struct {
		ID     int64
		Secret string
	}
	v.User = a.account(v)
	admin.must("POST", at+"/roles", map[string]any{"name": name, "permission": "member", "limit": share}, &role)
	admin.must("POST", at+"/members", map[string]any{"email": v.Email, "role_id": role.ID}, &place)
	admin.must("POST", at+"/service-accounts", map[string]any{"name": name, "role_id": a.viewers}, &service)
	v.role, v.ID, v.service = role.ID, place.ID, service.ID
	admin.must("POST", fmt.Sprintf("%s/members/%d/tokens", at, service.ID), map[string]any{"name": "audit", "scopes": []string{"read"}}, &token)
	v.serviceToken, v.serviceSecret = token.ID, token.Secret
	v.api = s.api(s.tokenOf(v.Email))
	for _, t := range list[id](v.api, "/tokens") {
		v.token = t.ID
	}
	var w workspace
	v.must("POST", "/workspaces", map[string]any{"project_id": a.project, "environment_id": a.env, "request": map[string]any{"memory_mib": 64, "cpu_milli": 50}}, &w)
	v.workspace = w.ID
	return v
}

// enters signs a visitor in, and opens the workspace by the session.
func (a *auditor) enters(v *auditee) {
	a.t.Helper()
	s := a.servers[0]
	v.await(v.workspace, "running", starting)
	if v.session = a.signsInByProvider(s, v.Name); v.session == nil {
		v.session = a.signsIn(s, v.Email)
	}
	for _, s := range a.servers {
		v.visits = append(v.visits, a.visits(s, *v))
	}
}

// account makes the account of a visitor: with a password, or by a first sign-in with the provider.
func (a *auditor) account(v auditee) int64 {
	a.t.Helper()
	s, fields := a.servers[0], map[string]any{"email": v.Email, "name": v.Name, "password": password, "admin": true}
	var user id
	if a.provider == nil {
		a.admin(s).must("POST", "/users", fields, &user)
		return user.ID
	}
	a.provider.AddPerson(openidtest.Person{Subject: v.Name, Email: v.Email, Verified: true, Name: v.Name})
	a.signsInByProvider(s, v.Name)
	for _, u := range list[id](a.admin(s), "/users?q="+v.Email) {
		user = u
	}
	a.admin(s).must("PUT", fmt.Sprintf("/users/%d", user.ID), map[string]any{"name": v.Name, "admin": true, "disabled": false}, nil)
	return user.ID
}

var providerForm = regexp.MustCompile(`name="id" value="([^"]+)"`)

// signsInByProvider is signsIn with the provider; nil if there is none.
func (a *auditor) signsInByProvider(s *server, who string) *http.Client {
	a.t.Helper()
	if a.provider == nil {
		return nil
	}
	client := s.browser()
	portal := client.Transport.(*http.Transport).Clone()
	a.t.Cleanup(portal.CloseIdleConnections)
	dial := portal.DialContext
	portal.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if "http://"+address == a.provider.Issuer {
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		return dial(ctx, network, address)
	}
	client.Transport, client.Timeout = portal, 0
	read := func(res *http.Response, err error) (address string, body []byte) {
		a.t.Helper()
		if err == nil {
			defer res.Body.Close()
			body, err = io.ReadAll(res.Body)
		}
		if err != nil || res.StatusCode != http.StatusOK {
			a.t.Fatalf("%s signs in with the provider: %v, %s", who, err, body)
		}
		return res.Request.URL.String(), body
	}
	_, form := read(client.Get(s.url + "/signin/oidc?next=/account"))
	login := url.Values{"id": {string(providerForm.FindSubmatch(form)[1])}, "username": {who}, "password": {openidtest.Password}}
	if at, body := read(client.PostForm(a.provider.Issuer+"/login/username", login)); at != s.url+"/account" {
		a.t.Fatalf("%s is at %s after the sign-in: %s", who, at, body)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client
}

// visits opens the workspace of a visitor by the session.
func (a *auditor) visits(s *server, v auditee) notebook {
	a.t.Helper()
	client := s.browser()
	client.Timeout = 0
	client.Jar = v.session.Jar
	res, err := client.Get(s.url + workspacePath(v.workspace) + "/open")
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || "http://"+res.Request.URL.Host == s.url {
		a.t.Fatalf("opening the workspace ends at %s with %s", res.Request.URL, res.Status)
	}
	return notebook{t: a.t, client: client, origin: originOf(a.t, res.Request.URL.String())}
}
