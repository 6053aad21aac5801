package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/casbin/casbin/v2/model"
	"github.com/casbin/govaluate"
)

// rule is a rule or a request: its subject, domain, object and act.
type rule [4]string

// tokens are the names of these in access.conf.
var tokens = []string{"sub", "dom", "obj", "act"}

// effect is that of access.conf: a rule that matches permits, and nothing denies.
const effect = "some(where (p_eft == allow))"

// decider evaluates rules with casbin's matcher. It is given the few rules of a subject about an
// object, so that the cost of a decision does not depend on the number of rules.
//
// The matcher is compiled once. casbin's Enforcer evaluates the same, but copies its functions
// and searches the matcher at each decision, which costs more than that.
type decider struct {
	matcher *govaluate.EvaluableExpression
}

// newDecider compiles a model, which must have the tokens and the effect that are evaluated here.
func newDecider(m model.Model) (d decider, err error) {
	for _, kind := range []string{"r", "p"} {
		var defined []string
		for _, token := range m[kind][kind].Tokens {
			defined = append(defined, strings.TrimPrefix(token, kind+"_"))
		}
		if !slices.Equal(defined, tokens) {
			return d, fmt.Errorf("policies: access.conf defines %s with %v, not %v", kind, defined, tokens)
		}
	}
	if got := m["e"]["e"].Value; got != effect {
		return d, fmt.Errorf("policies: access.conf has the effect %s, not %s", got, effect)
	}
	d.matcher, err = govaluate.NewEvaluableExpression(m["m"]["m"].Value)
	return d, err
}

// comparison is a request and the rule that is evaluated.
type comparison struct{ request, rule rule }

// Get implements [govaluate.Parameters].
func (c *comparison) Get(name string) (any, error) {
	of, token := name[:min(2, len(name))], name[min(2, len(name)):]
	switch i := slices.Index(tokens, token); {
	case i >= 0 && of == "r_":
		return c.request[i], nil
	case i >= 0 && of == "p_":
		return c.rule[i], nil
	}
	return nil, fmt.Errorf("policies: access.conf has no parameter %s", name)
}

// first returns the rule that permits a request.
func (d *decider) first(request rule, rules []rule) (permits rule, ok bool, err error) {
	c := comparison{request: request}
	for _, c.rule = range rules {
		if match, err := d.matcher.Eval(&c); err != nil || match == true {
			return c.rule, err == nil, err
		}
	}
	return permits, false, nil
}
