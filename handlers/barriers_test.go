package handlers

import (
	"encoding/json"
	"strings"
	"testing"

	"weir/web"
	"weir/workspaces"
)

// Barriers are allocated by page, by upload and by program, with the same result.
func TestBarriers(t *testing.T) {
	w := newWorld(t)
	bob := w.visitor("bob@example.org", false)
	bob.shows(bob.page(200, "GET", "/barriers"), "No kernel yet", "Load example", "!Download rewritten PTX")
	bob.shows(bob.page(200, "GET", "/barriers?example=1"), "barrier.arrive first, 64", "!No kernel yet")
	wanted := []string{"6 logical barriers in 2 segments use 4 of 16 physical barriers.", "It ends with strong barrier 16.", "line 14, arrive, warps 0", "Download rewritten PTX", "<svg", "!The number of threads is not known"}
	bob.shows(bob.upload(200, "/barriers", web.BarriersExample, "physical", "16"), wanted...)
	bob.shows(bob.page(200, "POST", "/barriers", "ptx", web.BarriersExample, "physical", "16"), wanted...)
	bob.shows(bob.page(422, "POST", "/barriers", "ptx", web.BarriersExample, "physical", "3"), `id="f-ptx-error"`,
		"segment 1 of pipeline (lines 14 to 23) needs 4 barriers, 1 more than there are; these overlap: first, second, third, 16")
	bob.shows(bob.page(422, "POST", "/barriers", "ptx", "x", "physical", "17"), `id="f-physical-error"`)
	bob.shows(bob.upload(422, "/barriers", strings.Repeat("\n", workspaces.MaxPTXBytes+1), "physical", "16"), `id="f-ptx-error"`, "must be at most 512 KiB")
	many := ".entry many() .reqntid 64 {\n" + strings.Repeat("bar.sync 1;\n", 100)
	bob.shows(bob.page(200, "POST", "/barriers", "ptx", many+"}", "physical", "16"), "Segment 100,", "!segments are shown")
	bob.shows(bob.page(200, "POST", "/barriers", "ptx", many+"bar.sync 1; }", "physical", "16"), "The first 100 of 101 segments are shown.", "Segment 100,", "!Segment 101,")

	body, err := json.Marshal(workspaces.BarriersInput{PTX: web.BarriersExample})
	if err != nil {
		t.Fatal(err)
	}
	a := w.want(200, w.member, "POST", "/barriers", string(body))
	rewritten, _ := a.body["ptx"].(string)
	if strings.Contains(rewritten, "first") || !strings.Contains(rewritten, "barrier.arrive 0, 64;") {
		t.Errorf("got %s", a.raw)
	}
	if file := bob.page(200, "POST", "/barriers", "ptx", web.BarriersExample, "physical", "16", "download", "1"); file != rewritten {
		t.Errorf("the download is %q, not %q", file, rewritten)
	}
	if fields := w.problem(w.want(422, w.member, "POST", "/barriers", `{"ptx":".entry k() {\nbar.sync %r1; }"}`)); !strings.Contains(fields["ptx"], "line 2: the barrier is in register %r1") {
		t.Errorf("got %v", fields)
	}
	if fields := w.problem(w.want(422, w.member, "POST", "/barriers", `{"ptx":"`+strings.Repeat(" ", workspaces.MaxPTXBytes+1)+`"}`)); !strings.Contains(fields["ptx"], "512 KiB") {
		t.Errorf("got %v", fields)
	}
	w.want(401, "", "POST", "/barriers", string(body))
}
