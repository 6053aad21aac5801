package policies

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/casbin/casbin/v2/model"
	"github.com/casbin/govaluate"

	"weir/models"
)

// maxDecisions bounds the cache of decisions. There are some forty rights, and roles mostly
// have the permissions of others.
const maxDecisions = 1 << 14

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

// query is what a decision depends on: the fixed subjects of an actor, or the permissions of a
// role.
type query struct {
	subjects    subjects
	permissions models.Permissions
	right       Right
}

// decide answers a query. Decisions are cached, and never stale: the query has the role's
// permissions as they were just read from the tables, so that a revocation is effective as soon
// as it is committed. Connections that were admitted before are closed by
// [store.Queries.Revoke] before the revoking call returns.
func (a *Access) decide(q query, find func() (rule, bool, error)) bool {
	a.mu.RLock()
	decision, cached := a.decisions[q]
	a.mu.RUnlock()
	if cached {
		return decision
	}
	_, decision, err := find()
	if err != nil {
		a.Log.Error("an access rule cannot be evaluated; access is denied", "right", q.right, "err", err)
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.decisions) >= a.max {
		clear(a.decisions)
	}
	a.decisions[q] = decision
	return decision
}

// fixedRule finds the rule of access.csv that permits subjects a right.
func (a *Access) fixedRule(s subjects, right Right) (permits rule, ok bool, err error) {
	object, act := right.split()
	for i, name := range subjectNames {
		if s&(1<<i) == 0 {
			continue
		}
		if permits, ok, err = a.decider.first(rule{name, "*", object, act}, a.fixed[name]); ok || err != nil {
			break
		}
	}
	return permits, ok, err
}

// roleRule finds the rule of a role that permits a right in its project.
func (a *Access) roleRule(project int64, grant Grant, right Right) (permits rule, ok bool, err error) {
	object, act := right.split()
	subject, domain := "role:"+strconv.FormatInt(grant.Role, 10), strconv.FormatInt(project, 10)
	var rules []rule
	for _, name := range grant.Permissions.Names() {
		if o, does := Right(name).split(); o == object {
			rules = append(rules, rule{subject, domain, o, does})
		}
	}
	return a.decider.first(rule{subject, domain, object, act}, rules)
}
