package graph

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"weir/models"
)

// Times are measured times on one CPU in seconds, by branch and operator.
type Times map[string]map[string]float64

// Whole is the name of the operators of a branch that run as one, of which only the sum is measured.
func Whole(operators int) string { return fmt.Sprintf("branch of %d", operators) }

// With is the graph with measured times in place of those that it states.
func (g Graph) With(t Times) Graph {
	branches := make([]Branch, len(g.Branches))
	for i, b := range g.Branches {
		operators := make([]Operator, len(b.Operators))
		for k, o := range b.Operators {
			if o.Name == "" {
				o.Name = numbered(k)
			}
			seconds := cmp.Or(t[b.Name][o.Name], t[b.Name][Whole(len(b.Operators))]/float64(len(b.Operators)))
			if seconds > 0 && amount(seconds) {
				o.Seconds, o.measured = seconds, true
			}
			operators[k] = o
		}
		b.Operators = operators
		branches[i] = b
	}
	g.Branches = branches
	return g
}

// Measured reports whether the time of an operator was measured.
func (g Graph) Measured() bool {
	return slices.ContainsFunc(g.Branches, func(b Branch) bool {
		return slices.ContainsFunc(b.Operators, func(o Operator) bool { return o.measured })
	})
}

// Merge is the times with newer ones in place of those of the same operators.
func (t Times) Merge(newer Times) Times {
	merged := Times{}
	for _, times := range []Times{t, newer} {
		for branch, operators := range times {
			if merged[branch] == nil {
				merged[branch] = map[string]float64{}
			}
			maps.Copy(merged[branch], operators)
		}
	}
	return merged
}

// load is the time of a branch on one CPU.
type load struct {
	seconds float64
	assumed bool
}

// loads are the times of the branches. They are relative if no time in seconds is known.
func (g *Graph) loads() (loads []load, relative bool, err error) {
	rate, relative, assumed := g.rate()
	loads = make([]load, len(g.Branches))
	unknown := make([]int, len(g.Branches))
	sum, known := 0.0, 0
	for i, b := range g.Branches {
		for _, o := range b.Operators {
			switch {
			case o.Seconds > 0:
				loads[i].seconds += o.Seconds
			case o.FLOPs > 0 && rate == 0:
				return nil, false, b.refuse(o, models.Say("%s is required, because it has only flops and others only seconds", "flops_per_second"))
			case o.FLOPs > 0:
				loads[i].seconds += o.FLOPs / rate
				loads[i].assumed = loads[i].assumed || assumed
			default:
				unknown[i]++
				continue
			}
			known++
		}
		sum += loads[i].seconds
	}
	mean := 1.0
	if known > 0 {
		mean = sum / float64(known)
	}
	for i, n := range unknown {
		loads[i].seconds += float64(n) * mean
		loads[i].assumed = loads[i].assumed || n > 0
	}
	return loads, relative || known == 0, nil
}

// rate is the operations of a second: as stated, or as operators of which both are known have
// it. If no seconds are known at all, times are relative. If all that are known were measured,
// of operators whose operations are not known, the mean of the others is assumed to take the mean
// of these. 0: it is not known.
func (g *Graph) rate() (rate float64, relative, assumed bool) {
	var timed, counted, both, flops float64 // seconds; operations of those without; seconds and operations of those with both
	var ofTimed, ofCounted float64          // how many
	stated := false
	for _, b := range g.Branches {
		for _, o := range b.Operators {
			switch {
			case o.Seconds > 0:
				timed, ofTimed, stated = timed+o.Seconds, ofTimed+1, stated || !o.measured
				if o.FLOPs > 0 {
					both, flops = both+o.Seconds, flops+o.FLOPs
				}
			case o.FLOPs > 0:
				counted, ofCounted = counted+o.FLOPs, ofCounted+1
			}
		}
	}
	switch {
	case g.FLOPS > 0:
		return g.FLOPS, false, false
	case timed == 0:
		return 1e9, true, false
	case both > 0:
		return flops / both, false, false
	case stated || counted == 0:
		return 0, false, false
	}
	return counted / ofCounted / (timed / ofTimed), false, true
}
