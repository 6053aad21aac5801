package workspaces

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir/models"
	"weir/workspaces/graph"
)

func TestParseGraph(t *testing.T) {
	g, err := ParseGraph([]byte(`
name: training
flops_per_second: 2e9
branches:
  - name: load
    operators:
      - {name: read, command: "cat *.csv", seconds: 4, retries: 2}
      - {command: [python, clean.py], flops: 8e9}
    branches:
      - {name: text, operators: [{command: "true"}]}
      - name: images
        branches: # only a name
          - {name: small, operators: [{command: "true"}]}
          - {name: large, after: [small], operators: [{command: "true"}]}
  - {name: join, after: [images, text, small], operators: [{command: "true"}]}
  - {name: all, after: [load], operators: [{command: "true"}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range g.Branches {
		got = append(got, fmt.Sprint(b.Name, b.After))
	}
	if want := "load[] text[load] small[load] large[load small] join[small large text] all[text small large load]"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if o := g.Branches[0].Operators; g.Name != "training" || g.FLOPS != 2e9 || len(o) != 2 || o[0].Retries != 2 || o[1].FLOPs != 8e9 || o[1].Name != "2" ||
		!slices.Equal(o[0].Command, []string{"/bin/sh", "-c", "cat *.csv"}) || !slices.Equal(o[1].Command, []string{"python", "clean.py"}) {
		t.Errorf("got %+v", g)
	}
}

func TestParseGraphRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"":           "is required",
		"\n ":        "is required",
		"[":          "is not valid YAML",
		"branch: []": "field branch not found",
		"branches: [{name: a, operators: [{seconds: long}]}]": "cannot unmarshal",
		"branches: []":                  "must have from 1 to 256 branches; has 0",
		"branches: [{name: a}]":         "branch a has no operators",
		"branches: [{operators: [{}]}]": "branch : must not be empty",
		"branches: [{name: a, operators: [{}]}, {name: a, operators: [{}]}]":                      "branch a: another one has this name",
		"branches: [{name: a, branches: [{name: b, after: [a], operators: [{}]}]}]":               "", // refused by a plan: it waits for itself
		"branches: [{name: a, operators: [{seconds: .nan}]}]":                                     "seconds must be from 0 to 1e+24",
		"branches: [{name: a, operators: [{command: {}}]}]":                                       "is not valid YAML",
		"branches: [{name: a, operators: [{}]}]\n---\nname: two":                                  "must be one YAML document",
		"branches: [" + strings.Repeat("{name: a, operators: [{}]},", 257) + "]":                  "has 257",
		strings.Repeat(" ", MaxGraphBytes) + "a":                                                  "must be at most 256 KiB",
		"branches: " + strings.Repeat("[{name: a, branches: ", 4000) + strings.Repeat("}]", 4000): "has 4000",
	} {
		_, err := ParseGraph([]byte(text))
		if says == "" {
			if err != nil {
				t.Errorf("%.60q: %v", text, err)
			}
			continue
		}
		if err != nil && regexp.MustCompile(`workspaces\.|float64|\[\]`).MatchString(err.Error()) {
			t.Errorf("%.60q: the error names a type of the program: %v", text, err)
		}
		if e, ok := err.(*models.Error); !ok || e.Fields[0].Name != "graph" || !strings.Contains(e.Fields[0].Reason.String(), says) {
			t.Errorf("%.60q: %v, want %s", text, err, says)
		}
	}
}

// A graph of the largest size costs no more than its size, whatever it repeats: comparing each
// of its names with all others would take half a minute.
func TestParseGraphIsLinear(t *testing.T) {
	var names strings.Builder
	for i := 0; names.Len() < MaxGraphBytes-500; i++ {
		fmt.Fprintf(&names, "%x,", i)
	}
	if _, err := ParseGraph([]byte("branches: [{name: a, operators: [{" + names.String() + "}]}]")); err == nil ||
		!strings.Contains(err.Error(), "a mapping must have at most 64 keys") {
		t.Errorf("many keys: %.200v", err)
	}
	text := "branches: [{name: a, after: &x [" + names.String() + "], operators: [{}]}" + strings.Repeat(", {name: b, after: *x, operators: [{}]}", 6) + "]"
	if _, err := ParseGraph([]byte(text)); err == nil || !strings.Contains(err.Error(), "another one has this name") {
		t.Errorf("many dependencies: %.200v", err)
	}
}

// Whatever the text, parsing ends with an error about the graph or with one that can be
// planned, unless its branches wait for each other.
func FuzzParseGraph(f *testing.F) {
	f.Add([]byte("name: x\nflops_per_second: 1e9\nbranches:\n- {name: a, operators: [{command: x, seconds: 1}, {flops: 2, retries: 1}]}\n- {name: b, after: [a], operators: [{}]}"))
	f.Add([]byte("branches: [{name: a, branches: [{name: b, operators: [{command: [x, y]}]}, {name: c, after: [b], operators: [{}]}]}]"))
	f.Add([]byte("branches: &x [{name: a, after: [b], operators: [{}], branches: *x}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := ParseGraph(text)
		if err == nil {
			var p models.GraphPlan
			if p, err = graph.Plan(g, graph.Machine(4), graph.Settings{}); err == nil && (len(p.Stages) == 0 || p.Makespan > p.Serial*(1+1e-9)) {
				t.Errorf("the plan of %q is %+v", text, p)
			}
		}
		if e, ok := err.(*models.Error); err != nil && (!ok || e.Fields[0].Name != "graph" || e.Fields[0].Reason.String() == "") {
			t.Errorf("%q: %v", text, err)
		}
	})
}
