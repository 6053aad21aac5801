package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// A notebook sees neither the portal's cookies nor how its visitor was let
// in, whatever the browser sends.
func TestNotebookSeesNoSecrets(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{gpus: "none"})
	team := s.team("curious", share, "ada")
	ada := team.Members[0]
	env := s.standIn(t)
	var w workspace
	ada.must("POST", "/workspaces", map[string]any{"project_id": team.Project, "environment_id": env, "request": map[string]any{"memory_mib": 128}}, &w)
	ada.await(w.ID, "running", starting)
	nb := ada.open(w.ID)
	origin, err := url.Parse(nb.origin)
	if err != nil {
		t.Fatal(err)
	}
	let := nb.client.Jar.Cookies(origin)
	if len(let) != 1 {
		t.Fatalf("let in with %v", let)
	}
	session := s.session("ada@example.org")
	nb.client.Jar.SetCookies(origin, []*http.Cookie{session, {Name: "__Host-weir", Value: "planted"}, {Name: "own", Value: "kept"}})

	seen := echo(t, nb, "")
	for _, secret := range []string{session.Value, let[0].Value, let[0].Name, "planted", ada.token} {
		if strings.Contains(seen, secret) {
			t.Errorf("the notebook sees %q in %s", secret, seen)
		}
	}
	if !strings.Contains(seen, "own=kept") {
		t.Errorf("the notebook's own cookie is lost: %s", seen)
	}
	program := notebook{t: t, client: s.browser(), origin: nb.origin}
	if seen := echo(t, program, ada.token); strings.Contains(seen, ada.token) || !strings.Contains(seen, "token ") {
		t.Errorf("let in by an access token, the notebook sees %s", seen)
	}
}

// echo is what the stand-in says it saw of a request.
func echo(t *testing.T, n notebook, token string) string {
	t.Helper()
	req, err := http.NewRequest("GET", n.origin+"/echo", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := n.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var seen struct {
		Path    string
		Headers json.RawMessage
	}
	if err := json.NewDecoder(res.Body).Decode(&seen); err != nil || seen.Path != "/echo" {
		t.Fatalf("the stand-in answers %s, %v", res.Status, err)
	}
	return string(seen.Headers)
}

// session signs in at the portal and returns its cookie.
func (s *server) session(email string) *http.Cookie {
	s.t.Helper()
	client := s.browser()
	res, err := client.PostForm(s.url+"/signin", url.Values{"email": {email}, "password": {password}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	u, err := url.Parse(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	cookies := client.Jar.Cookies(u)
	at := slices.IndexFunc(cookies, func(c *http.Cookie) bool { return strings.TrimPrefix(c.Name, "__Host-") == "weir" })
	if res.StatusCode != http.StatusOK || at < 0 {
		s.t.Fatalf("signed in as %s: %s with cookies %v", email, res.Status, cookies)
	}
	return cookies[at]
}
