package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"time"

	"weir/models"
	"weir/workspaces/graph"
)

// Bounds of a journal.
const (
	MaxBytes = 32 << 20
	maxLine  = 8 << 20 // a plan of a large graph
)

// State is what a journal tells.
type State struct {
	Graph    string         // its [Hash]; empty: no attempt has begun
	Attempts []string       // their ids
	Ended    map[string]int // operators of each branch that have succeeded, from its first on
	Times    graph.Times    // of those
	Progress models.GraphProgress

	whole     int64 // bytes of whole lines
	branches  map[string]int
	operators map[string]map[string]int // their places in their branch
}

// Read reads a journal, at most MaxBytes of it. why says why it is none.
func Read(r io.Reader) (s State, why models.Text, err error) {
	s = State{Ended: map[string]int{}, Times: graph.Times{}, branches: map[string]int{}, operators: map[string]map[string]int{}}
	s.Progress = models.GraphProgress{Branches: []models.BranchProgress{}, Plans: []models.GraphDecision{}, Samples: []models.GraphSample{}}
	lines := bufio.NewReaderSize(io.LimitReader(r, MaxBytes+1), 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			if s.whole+int64(len(line)) > MaxBytes {
				return s, tooLong(), nil
			}
			return s, models.Text{}, nil // what has no end was cut off
		}
		if err != nil {
			return s, models.Text{}, err
		}
		var e Event
		d := json.NewDecoder(bytes.NewReader(line))
		if len(line) > maxLine || d.Decode(&e) != nil || !s.apply(e) {
			return s, models.Say("it is not the journal of a task graph"), nil
		}
		if s.whole += int64(len(line)); s.whole > MaxBytes {
			return s, tooLong(), nil
		}
	}
}

func tooLong() models.Text { return models.Say("the journal has more than %d MiB", MaxBytes>>20) }

// apply adds an event; false if it cannot be.
func (s *State) apply(e Event) bool {
	p := &s.Progress
	if len(p.Branches) == 0 && e.Kind != Attempt {
		return false
	}
	switch e.Kind {
	case Attempt:
		return s.begin(e)
	case Plan:
		if e.Plan == nil {
			return false
		}
		p.Revisions++
		s.plan(e)
		return true
	case Start, End:
		return s.operator(e)
	case Sample:
		s.sample(e)
		return true
	case Over:
		p.EndedAt, p.Code, p.Failed = &e.At, &e.Code, e.Failed
		return true
	}
	return true // of a later version
}

// begin begins an attempt: what has not succeeded waits again.
func (s *State) begin(e Event) bool {
	p := &s.Progress
	if e.Plan == nil || s.Graph != "" && s.Graph != e.Graph || len(e.Operators) == 0 || len(e.Operators) > graph.MaxBranches {
		return false
	}
	operators := 0
	for _, names := range e.Operators {
		operators += len(names)
	}
	if operators > graph.MaxOperators {
		return false
	}
	s.Graph, s.Attempts = e.Graph, append(s.Attempts, e.ID)
	p.Attempts, p.EndedAt, p.Code, p.Failed = len(s.Attempts), nil, nil, ""
	if p.Attempts == 1 {
		p.Name, p.StartedAt = e.Plan.Name, e.At
		for _, stage := range e.Plan.Stages { // the whole graph, in the order of the plan
			for _, share := range stage.Shares {
				if names := e.Operators[share.Branch]; len(names) > 0 {
					s.add(share.Branch, names)
				}
			}
		}
	}
	for i := range p.Branches {
		b := &p.Branches[i]
		if len(e.Operators[b.Branch]) != len(b.Operators) {
			return false
		}
		ended := s.Ended[b.Branch]
		if b.Failed = false; ended < len(b.Operators) {
			b.EndedAt = nil
		}
		if ended == 0 {
			b.StartedAt = nil
		}
		for k := ended; k < len(b.Operators); k++ {
			o := &b.Operators[k]
			*o = models.OperatorProgress{Operator: o.Operator, Attempts: o.Attempts, CPUs: []int{}}
		}
	}
	s.plan(e)
	return len(p.Branches) == len(e.Operators)
}

// add adds a branch of which nothing has run.
func (s *State) add(name string, operators []string) {
	if _, known := s.branches[name]; known {
		return
	}
	b := models.BranchProgress{Branch: name, CPUs: []int{}}
	places := map[string]int{}
	for i, o := range operators {
		places[o] = i
		b.Operators = append(b.Operators, models.OperatorProgress{Operator: o, CPUs: []int{}})
	}
	s.operators[name] = places
	s.branches[name] = len(s.Progress.Branches)
	s.Progress.Branches = append(s.Progress.Branches, b)
}

// Bounds of what a journal tells of plans and measurements.
const (
	maxPlans   = 100
	maxSamples = 600
)

// sample adds a measurement. If there are too many, every other one is left out, but not the last.
func (s *State) sample(e Event) {
	p := &s.Progress
	p.Samples = append(p.Samples, models.GraphSample{At: e.At, Utilization: min(max(e.Utilization, 0), 100)})
	if len(p.Samples) <= maxSamples {
		return
	}
	kept := len(p.Samples)/2 + 1
	for i := range kept {
		p.Samples[i] = p.Samples[2*i]
	}
	p.Samples = p.Samples[:kept]
}

// plan takes over a plan of what remains, which begins at the event.
func (s *State) plan(e Event) {
	p := &s.Progress
	p.Mode, p.Reason, p.Relative, p.Utilization = e.Plan.Mode, e.Plan.Reason, e.Plan.Relative, e.Plan.Utilization
	p.SecondThreshold, p.FirstThreshold, p.PlannedAt = e.Plan.SecondThreshold, e.Plan.FirstThreshold, e.At
	p.Plans = append(p.Plans[max(0, len(p.Plans)-maxPlans+1):],
		models.GraphDecision{At: e.At, Mode: p.Mode, Utilization: p.Utilization, Reason: p.Reason})
	for i, stage := range e.Plan.Stages {
		for _, share := range stage.Shares {
			at, known := s.branches[share.Branch]
			if !known {
				continue
			}
			b := &p.Branches[at]
			b.Stage, b.CPUs = i+1, append([]int{}, share.CPUs...)
			b.PlannedFrom, b.PlannedUntil = offset(p.StartedAt, e.At, stage.From), offset(p.StartedAt, e.At, share.Until)
		}
	}
}

// offset is a time of a plan that was made at a moment, in seconds after the start.
func offset(start, planned time.Time, seconds float64) float64 {
	return max(planned.Sub(start).Seconds(), 0) + bounded(seconds)
}

// bounded is a number of seconds with which one can calculate.
func bounded(seconds float64) float64 { return min(max(seconds, 0), 1e15) }

// operator adds the start or the end of an operator.
func (s *State) operator(e Event) bool {
	i, known := s.branches[e.Branch]
	if !known {
		return false
	}
	b := &s.Progress.Branches[i]
	k, known := s.operators[e.Branch][e.Operator]
	if !known {
		return false
	}
	o := &b.Operators[k]
	if e.Kind == Start {
		o.StartedAt, o.EndedAt, o.Code, o.CPUs = &e.At, nil, nil, append([]int{}, e.CPUs...)
		o.Attempts++
		b.CPUs = o.CPUs
		if b.Failed = false; b.StartedAt == nil {
			b.StartedAt = &e.At
		}
		return true
	}
	o.EndedAt, o.Code, o.Seconds = &e.At, &e.Code, e.Seconds
	if o.StartedAt == nil { // it could not start
		o.StartedAt = &e.At
	}
	if b.Failed = e.Code != 0; b.Failed || k != s.Ended[e.Branch] {
		b.EndedAt = &e.At
		return true
	}
	s.Ended[e.Branch]++
	if s.Times[e.Branch] == nil {
		s.Times[e.Branch] = map[string]float64{}
	}
	s.Times[e.Branch][e.Operator] = e.Seconds
	if s.Ended[e.Branch] == len(b.Operators) {
		b.EndedAt = &e.At
	}
	return true
}
