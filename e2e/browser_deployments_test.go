package e2e

import (
	"fmt"
	"testing"
)

// TestDeploymentInBrowser is an engineer who plans a model, deploys it by the form, and sees
// its parts until they are loaded; a model that would be computed wrongly is refused before.
func TestDeploymentInBrowser(t *testing.T) {
	t.Parallel()
	chromium, axe := startChromium(t), readAxe(t)
	s := newServer(t, options{gpus: "h100:2"})
	limit := resources{GPUCores: 200, GPUMemoryMiB: 80_000, CPUMilli: 16_000, MemoryMiB: 32_000, StorageMiB: 1000}
	team := s.team("servers", limit, "ada")
	ada := team.Members[0]
	for name, config := range map[string]string{"tiny": decoderConfig, "other": `{"architectures":["GPT2LMHeadModel"],"vocab_size":256}`} {
		ada.writesModel(s, team.Project, name, config, decoder(1))
	}
	b := chromium.person(t, s.url).tab()
	b.signIn(ada.Email, password)
	model := fmt.Sprintf("/projects/%d/files/model?path=/notebook/%d/project_model/", team.Project, team.Project)
	b.goTo(model + "other&batch=1&context=64")
	b.sees("This model cannot be served: the architecture GPT2LMHeadModel is not implemented")
	axe.load(b)
	check(b, "the model that cannot be served")
	b.shoot("model-not-served")
	b.goTo(model + "tiny&batch=1&context=64")
	b.press("Deploy")
	b.at("/deployments/new")
	b.fill("Parts", "2")
	b.fill("GPU cores of each part", "101")
	b.loads(func() { b.press("Deploy") })
	b.sees("must be from 1 to 100")
	axe.load(b)
	check(b, "the form with an error")
	fits(b, "the form")
	b.shoot("deploy-form")
	b.fill("GPU cores of each part", "10")
	b.press("Deploy")
	b.at("/deployments/1")
	b.until("the serving deployment", `document.querySelector("p.state .tag").textContent.trim() === "serving"`)
	axe.visits(b, []visit{{path: "/deployments/1"}, {path: "/deployments"}, {path: "/deployments/new"}})
	b.goTo("/deployments")
	b.shoot("deployments")
	b.goTo("/deployments/1")
	b.shoot("deployment")

	chinese := chromium.person(t, s.url).tab()
	chinese.acceptLanguage("zh-CN")
	chinese.signInChinese(ada.Email)
	chinese.inChinese(readCatalog(t), "/deployments/1", "/deployments", "/deployments/new", model+"other&batch=1&context=64")
	chinese.goTo("/deployments/1")
	chinese.shoot("deployment-chinese")
	chinese.watch.clean()

	b.press("Stop")
	b.sees("It stops serving requests")
	b.loads(func() { b.press("Stop deployment") })
	b.until("the stopped deployment", `document.querySelector("p.state .tag").textContent.trim() === "stopped"`)
	b.watch.clean()
}
