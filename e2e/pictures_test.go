//go:build screenshots

// Pictures for people to look at, and for the README:
//
//	WEIR_SCREENSHOTS=DIR go test -tags screenshots -run Screenshots ./e2e
package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// TestScreenshots writes pictures of a busy portal, of every kind of page.
func TestScreenshots(t *testing.T) {
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:8"})
	member := busy(s)
	operator := chromium.person(t, s.url).tab()
	operator.signIn("operator@example.org", password)
	operator.goTo("/pool")
	for _, scheme := range schemes {
		operator.scheme(scheme)
		operator.picture(filepath.Join(os.Getenv("WEIR_SCREENSHOTS"), "readme-"+scheme+".png"))
	}
	operator.scheme("")
	for name, path := range map[string]string{"pool": "/pool", "projects": "/projects", "project": "/projects/1", "project-edit": "/projects/1/edit",
		"device": "/pool/devices/1", "provider": "/pool/providers/1", "capacity": "/capacity", "requests": "/requests", "request-new": "/requests/new", "notifications": "/notifications", "usage": "/projects/1/usage", "webhooks": "/webhooks", "access": "/access", "departments": "/departments", "plan-capacity": "/pool/planning?add=h100:8", "environments": "/environments", "people": "/people", "person": "/people/2", "audit": "/audit", "tokens": "/tokens",
		"account": "/account", "role-edit": "/projects/1/roles/1/edit", "member-edit": "/projects/1/members/1/edit", "environment-new": "/environments/new",
		"role-delete": "/projects/1/roles/1/delete", "api": "/api/docs", "nowhere": "/nowhere"} {
		operator.goTo(path)
		operator.shoot("busy-" + name)
	}
	operator.goTo("/projects/new")
	submitEmpty(operator)
	operator.shoot("busy-refused")
	b := chromium.person(t, s.url).tab()
	b.signIn(member.Email, password)
	for name, path := range map[string]string{"home": "/", "workspaces": "/workspaces?state=all", "running": "/workspaces/1", "queued": "/workspaces/7",
		"failed": "/workspaces/8", "launch-short": "/launch?gpus=4&cores=100", "launch-refused": "/launch?versions=jax", "member-pool": "/pool"} {
		b.goTo(path)
		b.shoot("busy-" + name)
	}
	b.acceptLanguage("zh")
	operator.acceptLanguage("zh")
	for name, path := range map[string]string{"home": "/", "launch": "/launch?gpus=1&cores=40", "running": "/workspaces/1", "request-new": "/requests/new", "usage": "/projects/1/usage"} {
		b.goTo(path)
		b.shoot("chinese-" + name)
	}
	for name, path := range map[string]string{"pool": "/pool", "project": "/projects/1", "capacity": "/capacity", "role-edit": "/projects/1/roles/1/edit", "nowhere": "/nowhere"} {
		operator.goTo(path)
		operator.shoot("chinese-" + name)
	}
}

// busy fills a server with three teams; it returns the member who runs, waits
// and has failed.
func busy(s *server) member {
	s.t.Helper()
	limit := resources{GPUCores: 400, GPUMemoryMiB: 320 << 10, CPUMilli: 16000, MemoryMiB: 32 << 10, StorageMiB: 200 << 10}
	ask := func(m member, project int64, name string, gpus, cores int64, more map[string]any) {
		body := map[string]any{"project_id": project, "name": name, "request": map[string]any{"gpus": gpus, "cores": cores, "cpu_milli": 1000, "memory_mib": 1024}}
		for k, v := range more {
			body[k] = v
		}
		m.must("POST", "/workspaces", body, nil)
	}
	speech := s.teamWithin("Speech models", limit.times(2), limit, "wang", "li")
	vision := s.team("Vision", limit, "zhao", "chen")
	genomics := s.team("Genomics", limit, "nora", "omar")
	wang := speech.Members[0]
	wang.running(speech.Project, "acoustic model")
	ask(speech.Members[1], speech.Project, "tokenizer", 1, 30, nil)
	ask(vision.Members[0], vision.Project, "detector", 1, 100, nil)
	ask(vision.Members[1], vision.Project, "segmentation", 2, 60, nil)
	ask(genomics.Members[0], genomics.Project, "variant calling", 1, 40, nil)
	ask(genomics.Members[1], genomics.Project, "assembly", 1, 100, nil)
	ask(wang, speech.Project, "distillation", 3, 100, map[string]any{"when_short": "wait"})
	var broken id
	s.api(s.admin()).must("POST", "/environments", map[string]any{"name": "PyTorch 2.9", "language": "Python", "language_version": "3.12",
		"versions": map[string]string{"torch": "2.9.0"}, "command": []string{"/bin/false"}}, &broken)
	ask(wang, speech.Project, "evaluation", 0, 0, map[string]any{"environment_id": broken.ID})
	wang.await(8, "failed", patience)
	vision.Members[1].await(4, "running", patience)
	genomics.Members[1].await(6, "running", patience)
	return wang
}
