package placement

import (
	"fmt"
	"strings"
)

// Default is the policy to use where none was chosen.
const Default = Weir

// Policies are the names that [PolicyNamed] knows, the simplest first.
func Policies() []string { return []string{BestFit, Spread, Weir} }

// PolicyNamed is the policy of that name, or the default where the name is
// empty; it fails on a name that is none of [Policies]. What weir expects to
// come it learns from history, where a demand that stands twice is twice as
// likely; an empty one teaches nothing, and the policy is best-fit and says so.
func PolicyNamed(name string, history []Demand) (Policy, error) {
	switch name {
	case BestFit:
		return Policy{Name: BestFit}, nil
	case Spread:
		return Policy{Name: Spread, scorer: func(*Engine) scorer { return spread{} }}, nil
	case Weir, "":
		if kinds := kindsOf(history); len(kinds) > 0 {
			return Policy{Name: Weir, scorer: func(e *Engine) scorer { return &lookahead{reserve: &reserve{pool: e, kinds: kinds}} }}, nil
		}
		return Policy{Name: BestFit}, nil
	}
	return Policy{}, fmt.Errorf("there is no placement policy %q; there are %s", name, strings.Join(Policies(), ", "))
}
