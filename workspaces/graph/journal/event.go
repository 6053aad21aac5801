package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"weir/models"
	"weir/workspaces/graph"
)

// Kind is what an event is about.
type Kind string

// The kinds of events, with the fields that they have besides At.
const (
	Attempt Kind = "attempt" // ID, Graph, Operators, Plan
	Plan    Kind = "plan"    // Plan
	Start   Kind = "start"   // Branch, Operator, CPUs
	End     Kind = "end"     // Branch, Operator, Seconds, Code
	Sample  Kind = "sample"  // Utilization
	Over    Kind = "over"    // Code, Failed
)

// Event is a line of a journal.
type Event struct {
	Kind      Kind                `json:"kind"`
	At        time.Time           `json:"at"`
	ID        string              `json:"id,omitempty"`        // of the attempt
	Graph     string              `json:"graph,omitempty"`     // its [Hash]
	Operators map[string][]string `json:"operators,omitempty"` // of each branch
	Plan      *models.GraphPlan   `json:"plan,omitempty"`      // of what remains
	Branch    string              `json:"branch,omitempty"`
	Operator  string              `json:"operator,omitempty"`
	CPUs      []int               `json:"cpus,omitempty"`
	Seconds   float64             `json:"seconds,omitempty"` // on one CPU
	Code      int                 `json:"code,omitempty"`
	Failed    string              `json:"failed,omitempty"` // what has ended the attempt, if its code is not 0

	Utilization float64 `json:"utilization,omitempty"` // percent
}

// Hash tells graphs apart: their branches and operators, with commands and dependencies. Times
// and retries do not matter.
func Hash(g graph.Graph) string {
	type operator struct {
		Name    string
		Command []string
	}
	type branch struct {
		Name      string
		After     []string
		Operators []operator
	}
	list := make([]branch, len(g.Branches))
	for i, b := range g.Branches {
		list[i] = branch{Name: b.Name, After: b.After}
		for _, o := range b.Operators {
			list[i].Operators = append(list[i].Operators, operator{o.Name, o.Command})
		}
	}
	content, _ := json.Marshal(list) // texts have no errors
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}

// Begin is the event of an attempt to run a graph, which was checked.
func Begin(g graph.Graph, id string, at time.Time, plan models.GraphPlan) Event {
	e := Event{Kind: Attempt, At: at, ID: id, Graph: Hash(g), Operators: map[string][]string{}, Plan: &plan}
	for _, b := range g.Branches {
		for _, o := range b.Operators {
			e.Operators[b.Name] = append(e.Operators[b.Name], o.Name)
		}
	}
	return e
}
