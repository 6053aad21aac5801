package handlers

import (
	"encoding/json"
	"strings"
	"testing"

	"weir/models"
	"weir/web"
	"weir/workspaces"
)

// Graphs are planned by page, by upload and by program, with the same result.
func TestGraphs(t *testing.T) {
	w := newWorld(t)
	bob := w.visitor("bob@example.org", false)
	bob.shows(bob.page(200, "GET", "/graphs"), "No graph yet", "Load example", "!Planned time")
	bob.shows(bob.page(200, "GET", "/graphs?example=1"), "python tokenize.py", "!No graph yet")
	fields := []string{"cpus", "8", "utilization", "20", "second_threshold", "50", "first_threshold", "70"}
	wanted := []string{"Plan of training", "Utilization 20% is below the second threshold, 50%: branches share 80% of 8 CPUs, 6.4, rounded to 6.",
		"<svg", "share 4.27, whole 3", "After load.", "57.0", "282.0"}
	bob.shows(bob.upload(200, "/graphs", web.GraphsExample, fields...), wanted...)
	bob.shows(bob.page(200, "POST", "/graphs", append(fields, "graph", web.GraphsExample)...), wanted...)
	bob.shows(bob.page(200, "POST", "/graphs", "cpus", "8", "utilization", "90", "graph", web.GraphsExample), "Operators run one after another.", `class="serial"`)
	bob.shows(bob.page(422, "POST", "/graphs", append(fields, "graph", "branches: [{name: a}]")...), `id="f-graph-error"`, "branch a has no operators")
	bob.shows(bob.page(422, "POST", "/graphs", "graph", web.GraphsExample, "cpus", "8", "utilization", "101"), `id="f-utilization-error"`, "must be from 0% to 100%")
	bob.shows(bob.page(422, "POST", "/graphs", "graph", web.GraphsExample, "cpus", "0", "utilization", "0"), `id="f-cpus-error"`)
	bob.shows(bob.page(422, "POST", "/graphs", "graph", web.GraphsExample, "cpus", "8", "reduced_cpus", "8"), `id="f-reduced_cpus-error"`)
	bob.shows(bob.upload(422, "/graphs", strings.Repeat("\n", workspaces.MaxGraphBytes+1), fields...), `id="f-graph-error"`, "must be at most 256 KiB")

	body, err := json.Marshal(workspaces.GraphInput{Graph: web.GraphsExample, GraphMachine: models.GraphMachine{CPUs: 8, Utilization: 20}})
	if err != nil {
		t.Fatal(err)
	}
	plan := w.want(200, w.member, "POST", "/graphs/plan", string(body)).body
	if plan["makespan_seconds"] != 57.0 || plan["mode"] != "parallel" || plan["budget"] != 6.0 || len(plan["stages"].([]any)) != 3 {
		t.Errorf("got %v", plan)
	}
	w.want(401, "", "POST", "/graphs/plan", string(body))
	const one = `{"graph":"branches: [{name: a, operators: [{}]}]",`
	for body, field := range map[string]string{`{"graph":"branches: []","cpus":8}`: "graph", one + `"cpus":0}`: "cpus", one + `"cpus":8,"utilization":101}`: "utilization",
		one + `"cpus":8,"second_threshold":70}`: "second_threshold", one + `"cpus":8,"serial_cpus":6}`: "serial_cpus"} {
		if fields := w.problem(w.want(422, w.member, "POST", "/graphs/plan", body)); fields[field] == "" {
			t.Errorf("%s: %s is not named: %v", body, field, fields)
		}
	}
}
