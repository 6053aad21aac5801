package workspaces

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"weir/models"
	"weir/policies"
	"weir/workspaces/graph"
)

// MaxGraphBytes is the most bytes of a graph in YAML, and MaxGraph the same in words.
const (
	MaxGraphBytes = 256 << 10
	MaxGraph      = "256 KiB"
)

// GraphInput is a graph to be planned, and the machine that it is planned for.
type GraphInput struct {
	Graph string `json:"graph" doc:"graph in YAML; at most 256 KiB"`
	RunID int64  `json:"run_id,omitempty" minimum:"0" doc:"run of a graph whose measured times take the place of stated ones; absent: none"`
	models.GraphMachine
}

// PlanGraph plans a graph. Whoever is signed in can do that: it stores nothing, and reads only the
// times of a run whose output the actor may read. Errors are about the field graph, with the
// reason, if it cannot be planned, or run_id.
func (s *Service) PlanGraph(ctx context.Context, actor policies.Actor, in GraphInput) (models.GraphPlan, error) {
	if !actor.SignedIn() {
		return models.GraphPlan{}, s.access.Check(actor, policies.Platform, policies.WorkspaceRead)
	}
	g, err := ParseGraph([]byte(in.Graph))
	if err == nil && in.RunID != 0 {
		g, err = s.withTimesOf(ctx, actor, g, in.RunID)
	}
	if err != nil {
		return models.GraphPlan{}, err
	}
	return graph.PlanOn(g, in.GraphMachine)
}

// withTimesOf is a graph with the times that a run has measured.
func (s *Service) withTimesOf(ctx context.Context, actor policies.Actor, g graph.Graph, run int64) (graph.Graph, error) {
	state, err := s.runGraph(ctx, actor, run)
	if models.KindOf(err) == models.KindNotFound && err != nil {
		err = models.Invalid("run_id", "must be a run of a task graph")
	}
	if err != nil {
		return g, err
	}
	timed := g.With(state.Times)
	if !timed.Measured() {
		return g, models.Invalid("run_id", "has measured no operator of this graph")
	}
	return timed, nil
}

// maxGraphBranches is the most branches of a graph in YAML. Each can wait for all others.
const maxGraphBranches = 256

// graphFile is a graph as YAML has it.
type graphFile struct {
	Name     string       `yaml:"name"`
	FLOPS    float64      `yaml:"flops_per_second"`
	Branches []branchFile `yaml:"branches"`
}

type branchFile struct {
	Name      string         `yaml:"name"`
	After     []string       `yaml:"after"`
	Operators []operatorFile `yaml:"operators"`
	Branches  []branchFile   `yaml:"branches"` // into which it forks when its operators have ended
}

type operatorFile struct {
	Name    string      `yaml:"name"`
	Command commandLine `yaml:"command"`
	Seconds float64     `yaml:"seconds"`
	FLOPs   float64     `yaml:"flops"`
	Retries int         `yaml:"retries"`
}

// commandLine is a program with its arguments, in YAML a list or a line for the shell.
type commandLine []string

func (c *commandLine) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*c = commandLine{"/bin/sh", "-c", n.Value}
		return nil
	}
	return n.Decode((*[]string)(c))
}

// goTypes matches what the YAML library's errors say of the program's types.
var goTypes = regexp.MustCompile(` (in type|into) [\w.*\[\]]+`)

// ParseGraph parses a graph in YAML, which is anybody's text. Forks in branches become
// dependencies: they begin after the operators of their branch, and what waits for the branch
// waits for them too. The error is about the field graph.
func ParseGraph(content []byte) (graph.Graph, error) {
	if len(content) > MaxGraphBytes {
		return graph.Graph{}, models.Invalid("graph", "must be at most %s", MaxGraph)
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return graph.Graph{}, models.Invalid("graph", "is required")
	}
	var file graphFile
	var all yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(content))
	d.KnownFields(true)
	err := yaml.Unmarshal(content, &all)
	if err == nil && widest(&all) > maxKeys {
		return graph.Graph{}, models.Invalid("graph", "a mapping must have at most %d keys", maxKeys)
	}
	if err == nil {
		err = d.Decode(&file)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return graph.Graph{}, models.Invalid("graph", "is not valid YAML: %s", models.Excerpt(goTypes.ReplaceAllString(err.Error(), "")))
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return graph.Graph{}, models.Invalid("graph", "must be one YAML document")
	}
	if n := countBranches(file.Branches); n < 1 || n > maxGraphBranches {
		return graph.Graph{}, models.Invalid("graph", "must have from %d to %d branches; has %d", 1, maxGraphBranches, n)
	}
	forks := map[string][]string{}
	collectForks(file.Branches, forks)
	g := graph.Graph{Name: models.VisibleName(file.Name), FLOPS: file.FLOPS}
	flatten(&g, file.Branches, nil, forks)
	return g, g.Check()
}

// maxKeys is the most keys of a mapping. The YAML library compares each with all others.
const maxKeys = 64

// widest is the most keys that a mapping has.
func widest(n *yaml.Node) (keys int) {
	if n.Kind == yaml.MappingNode {
		keys = len(n.Content) / 2
	}
	for _, one := range n.Content {
		keys = max(keys, widest(one))
	}
	return keys
}

func countBranches(list []branchFile) (n int) {
	for _, b := range list {
		n += 1 + countBranches(b.Branches)
	}
	return n
}

// collectForks fills in, by name, which branches a branch and the forks in it are, and returns
// those of the list. A branch without operators is only a name for those in it.
func collectForks(list []branchFile, forks map[string][]string) (names []string) {
	for _, b := range list {
		own := collectForks(b.Branches, forks)
		if b.runs() {
			own = append(own, b.Name)
		}
		forks[b.Name], names = own, append(names, own...)
	}
	return names
}

func (b branchFile) runs() bool { return len(b.Operators) > 0 || len(b.Branches) == 0 }

// flatten adds branches that begin after others to a graph, and those into which they fork.
func flatten(g *graph.Graph, list []branchFile, after []string, forks map[string][]string) {
	for _, b := range list {
		own, has := graph.Branch{Name: b.Name, After: slices.Clone(after)}, map[string]bool{}
		for _, name := range after {
			has[name] = true
		}
		for _, name := range b.After {
			before, known := forks[name]
			if !known {
				before = []string{name}
			}
			for _, one := range before {
				if !has[one] {
					has[one], own.After = true, append(own.After, one)
				}
			}
		}
		for _, o := range b.Operators {
			own.Operators = append(own.Operators, graph.Operator{Name: o.Name, Command: o.Command, Seconds: o.Seconds, FLOPs: o.FLOPs,
				Retries: o.Retries})
		}
		inner := own.After
		if b.runs() {
			g.Branches, inner = append(g.Branches, own), []string{b.Name}
		}
		flatten(g, b.Branches, inner, forks)
	}
}
