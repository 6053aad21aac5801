//go:build screenshots

// Pictures of the tutorials in both languages:
//
//	go test -tags screenshots -run TutorialPictures ./e2e
package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

const tutorialWidth = 1000

// tutorialPicture writes a picture of a page in both languages to the tutorial.
func (b *tab) tutorialPicture(name, path string, then func(b *tab)) {
	b.t.Helper()
	for _, look := range [][2]string{{"zh", ".zh.png"}, {"en", ".png"}} {
		b.acceptLanguage(look[0])
		b.goTo(path)
		if then != nil {
			then(b)
		}
		b.photoOf(name + look[1])
	}
}

// photoOf writes what the tab shows, with the height of the content within limits.
func (b *tab) photoOf(file string) {
	b.t.Helper()
	b.scheme("light")
	b.resize(tutorialWidth, 500)
	b.resize(tutorialWidth, min(max(eval[int64](b, "document.scrollingElement.scrollHeight"), 500), 1300))
	b.picture(filepath.Join("..", "docs", "tutorial", file))
}

func TestTutorialPictures(t *testing.T) {
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:8"})
	link := strings.TrimPrefix(s.setupLink(), s.url)
	chromium.person(t, s.url).tab().tutorialPicture("setup", link, fills(map[string]string{"email": "ada@example.org", "name": "Ada"}))
	admin := s.api(s.admin())
	desk := chromium.person(t, s.url).tab()
	desk.signIn("operator@example.org", password)
	desk.tutorialPicture("start", "/projects/start", fills(map[string]string{"name": "Vision", "members": "4"}))
	admin.must("POST", "/projects/start", map[string]any{"name": "Vision", "members": 4}, nil)
	desk.tutorialPicture("add-provider", "/pool/providers/new", nil)
	desk.tutorialPicture("invite-people", "/people/new", nil)

	li := s.invited(t, chromium, "li@example.org", "Li Na", 1)
	wang := s.invited(t, chromium, "wang@example.org", "Wang Fang", 2)
	engineer := s.api(s.tokenOf("wang@example.org"))
	engineerPictures(wang, engineer)
	managerPictures(li)
	desk.tutorialPicture("pool", "/pool", nil)
	desk.tutorialPicture("audit", "/audit", nil)
}

// invited invites a person to the project, takes pictures of the invitation, accepts it
// and signs in.
func (s *server) invited(t *testing.T, c *chromium, email, name string, role int64) *tab {
	t.Helper()
	var made struct {
		Items []struct {
			URL string `json:"url"`
		} `json:"items"`
	}
	s.api(s.admin()).must("POST", "/projects/1/invitations", map[string]any{"emails": []string{email}, "role_id": role}, &made)
	link := made.Items[0].URL
	b := c.person(t, s.url).tab()
	b.tutorialPicture("invitation", strings.TrimPrefix(link, s.url), fills(map[string]string{"name": name}))
	_, token, _ := strings.Cut(link, "token=")
	newCurl(t).call(http.StatusOK, "POST", s.url+"/api/v1/invitations/accept", fmt.Sprintf(`{"token": %q, "name": %q, "password": %q}`, token, name, password), nil)
	b.signIn(email, password)
	return b
}

func engineerPictures(b *tab, a api) {
	b.t.Helper()
	b.tutorialPicture("home", "/", nil)
	b.tutorialPicture("launch", "/launch?gpus=1&cores=50", nil)
	var w workspace
	a.must("POST", "/workspaces", map[string]any{"project_id": 1, "name": "first steps", "request": map[string]any{"gpus": 1, "cores": 50}}, &w)
	a.await(w.ID, "running", patience)
	b.tutorialPicture("workspace", workspacePath(w.ID), nil)
	n := newNotebook(b.opened("//ws-1.localhost", func() { b.press("Open") }))
	n.enterCell()
	if got := n.runSelected("print(6*7)"); strings.TrimSpace(got) != "42" {
		b.t.Errorf("the cell answered %q", got)
	}
	n.photoOf("jupyter.png")
	for _, name := range []string{"tokenizer.json", "train.ipynb", "checkpoints/epoch-1.pt"} {
		a.s.writes("/notebook/1/project_model/"+name, "{}")
	}
	b.tutorialPicture("files", "/projects/1/files?path=/notebook/1/project_model", nil)
	b.tutorialPicture("request", "/requests/new?kind=limit&project_id=1", nil)
	a.must("POST", "/requests", map[string]any{"reason": "A larger model needs two GPUs.", "limit": map[string]any{"project_id": 1, "role_id": 2,
		"limit": map[string]any{"gpu_cores": 250}}}, nil)
}

func managerPictures(b *tab) {
	b.t.Helper()
	b.tutorialPicture("project", "/projects/1", nil)
	b.tutorialPicture("role", "/projects/1/roles/2/edit", fills(map[string]string{"limit.gpu_cores": "300"}))
	b.tutorialPicture("invite-members", "/projects/1/invitations/new", nil)
	b.tutorialPicture("decide", "/requests/1", nil)
	b.tutorialPicture("usage", "/projects/1/usage", nil)
}
