package e2e

import (
	"fmt"
	"testing"
	"time"
)

// TestIdleWorkspaceInBrowser has two real notebooks that work and then rest, while a page
// is open: one is kept, the other one is stopped and its GPU is released. The page of a run that
// rests offers the same.
func TestIdleWorkspaceInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{args: []string{"--gpu-idle-timeout", "2m"}})
	limit := resources{GPUCores: 100, GPUMemoryMiB: 80 << 10, CPUMilli: 4200, MemoryMiB: 9 << 10, StorageMiB: 10 << 10}
	team := s.team("Speech", limit, "wang")
	wang := team.Members[0]
	kept, idle := wang.running(team.Project, "kept").ID, wang.running(team.Project, "idle").ID
	type view struct {
		Idleness struct {
			Limit   int64 `json:"limit_minutes"`
			Signal  string
			StopsAt *time.Time `json:"stops_at"`
		}
	}
	for _, id := range []int64{kept, idle} {
		if out := wang.open(id).execute("print(6 * 7)"); out != "42\n" {
			t.Fatalf("the cell printed %q", out)
		}
	}
	for _, id := range []int64{kept, idle} {
		eventually(t, ready, func() string {
			var w view
			if wang.must("GET", workspacePath(id), nil, &w); w.Idleness.Signal != "code" || w.Idleness.Limit != 2 || w.Idleness.StopsAt == nil {
				return fmt.Sprintf("the cell is not known: %+v", w)
			}
			return ""
		})
	}
	person := chromium.person(t, s.url)
	list := person.tab()
	list.signIn(wang.Email, password)
	page := person.tab()
	page.goTo(workspacePath(kept))
	page.sees("code in a kernel")
	page.stay()
	page.until("how long it runs", `(window.ran ??= document.querySelector("time[data-time=since]").innerText) !== document.querySelector("time[data-time=since]").innerText`)
	page.until("the reminder", `/This workspace is idle\. It will be stopped in \d+\s(min|s) unless/.test(document.querySelector(".flash.warn")?.innerText)`)
	page.stayed()
	list.goTo("/workspaces")
	list.front()
	list.press("Keep kept running")
	list.until("that it is kept", `document.querySelector("#flash").innerText.includes("keeps running")`)
	page.front()
	page.until("that it is kept", `!document.querySelector(".flash.warn") && document.body.innerText.includes("Last work: kept running")`)
	page.stayed()
	page.shoot("workspace-kept")
	var resting id
	wang.must("POST", "/runs", map[string]any{"project_id": team.Project, "command": []string{"sleep", "600"}, "lease_seconds": 3600,
		"request": map[string]any{"gpus": 0, "cpu_milli": 100, "memory_mib": 64, "idle_minutes": 2}}, &resting)
	list.goTo(workspacePath(idle))
	list.front()
	list.stay()
	list.until("the stop", tagged("stopped"))
	list.stayed()
	list.sees("Stopped: idle for 2 minutes.")
	list.sees("No GPU in use.")
	if w := wang.workspace(kept); w.State != "running" {
		t.Errorf("the kept one is %s: %s", w.State, w.Reason)
	}
	page.goTo(fmt.Sprintf("/runs/%d", resting.ID))
	page.front()
	page.until("the reminder", `/It will be stopped in \d+\s(s|min)\.\s+Keep running[^]+Stop/.test(document.querySelector(".flash.warn")?.innerText)`)
	axe := readAxe(t)
	axe.load(page)
	for _, scheme := range schemes {
		page.scheme(scheme)
		check(page, "an idle run, "+scheme)
	}
	page.press(fmt.Sprintf("Keep running sleep %d", resting.ID))
	page.until("that it is kept", `document.querySelector("#flash").innerText.includes("keeps running") && !document.querySelector(".flash.warn")`)
	wang.must("POST", fmt.Sprintf("/runs/%d/stop", resting.ID), nil, nil)
	page.until("its end", `document.body.innerText.includes("Its shares were released.")`)
	for _, b := range []*tab{list, page} {
		b.watch.clean()
	}
}
