package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestModelInBrowser is an administrator who makes an engineer the curator of the public
// models, and the engineer, who names the environment of a model and launches from its
// directory.
func TestModelInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:2"})
	team := s.sharing("wang")
	dir, page := sharedDir(team.Project)
	s.writes(dir+"/whisper/model.pt", "weights")
	var environments struct {
		Items []struct {
			Name string `json:"name"`
		} `json:"items"`
	}
	s.api(s.admin()).must("GET", "/environments", nil, &environments)
	environment := environments.Items[0].Name

	operator := chromium.person(t, s.url).tab()
	operator.signIn("operator@example.org", password)
	operator.goTo("/curators")
	operator.sees("No curators yet.")
	eval[bool](operator, `(document.querySelector("[name=directory]").value = "/public_model") !== ""`)
	operator.fill("Person", team.Members[0].Email)
	operator.loads(func() { operator.press("Add curator") })
	operator.until("the curator", `document.querySelector("main tbody").textContent.includes("wang")`)
	operator.shoot("curators")

	wang := chromium.person(t, s.url).tab()
	wang.signIn(team.Members[0].Email, password)
	wang.goTo(fmt.Sprintf("/projects/%d/files?path=/public_model", team.Project))
	wang.fill("Name of the new directory", "shared-by-wang")
	wang.loads(func() { wang.press("Create") })
	wang.shows("shared-by-wang")

	wang.goTo(page)
	wang.press("Details of whisper")
	wang.sees("Environment of the model")
	wang.fill("Environment", environment)
	wang.fill("Version constraints", "python>=3.9")
	wang.loads(func() { wang.press("Save") })
	wang.sees("Environment of the model saved.")
	if manifest := s.reads(dir + "/whisper/weir.yaml"); !strings.Contains(manifest, "python>=3.9") {
		t.Errorf("the manifest is %q", manifest)
	}
	wang.goTo(page + "/whisper")
	wang.press("Launch with this model")
	wang.sees("For the model " + dir + "/whisper")
	wang.sees("It needs " + environment + ", python>=3.9.")
	axe := readAxe(t)
	axe.load(wang)
	check(wang, "the launch for a model")
	wang.shoot("launch-model")
	wang.pressAt("launch", `document.querySelector("main button.primary[type=submit]")`)
	wang.at(`/workspaces/\d+`)
	wang.until("the running workspace", `document.querySelector("p.state .tag").textContent.trim() === "running"`)
	n := newNotebook(wang.opened("//ws-1.localhost", func() { wang.press("Open") }))
	n.enterCell()
	if got := n.runSelected(`import os; m = os.environ["WEIR_MODEL"]; print(m, os.listdir(m))`); !strings.Contains(got, dir+"/whisper [") || !strings.Contains(got, "model.pt") {
		t.Errorf("the cell answered %q", got)
	}
	operator.watch.clean()
	wang.watch.clean()
}
