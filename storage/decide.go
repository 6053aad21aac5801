package storage

import (
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/casbin/casbin/v2/effector"
	"github.com/casbin/casbin/v2/model"
	"github.com/casbin/govaluate"

	"weir/models"
	"weir/storage/rules"
)

//go:embed access.conf
var accessModel string

// decider evaluates rules with casbin. The index of [rules.Set] selects the few rules of
// a path, so that the cost of a decision does not depend on the number of rules;
// casbin's matcher and its priority effect decide among them.
//
// The matcher is compiled once. casbin's Enforcer evaluates the same, but copies its
// functions and searches the matcher at each decision, which costs more than that.
type decider struct {
	matcher  *govaluate.EvaluableExpression
	effect   string
	effector effector.Effector
	requests sync.Pool // of *request
	log      func() *slog.Logger
}

// request is the question whether a user may use a path, with the buffers of its
// decision.
type request struct {
	subjects *rules.Subjects
	path     string
	list     []*rules.Rule
	rule     *rules.Rule // that is evaluated

	candidates []*rules.Rule // the rules that have an effect
	effects    []effector.Effect
	matches    []float64
}

// Get implements [govaluate.Parameters].
func (r *request) Get(name string) (any, error) {
	switch name {
	case "r_user":
		return r, nil
	case "p_rule":
		return r.rule, nil
	default:
		return nil, fmt.Errorf("storage: access.conf has no parameter %s", name)
	}
}

func newDecider(log func() *slog.Logger) (*decider, error) {
	m, err := model.NewModelFromString(accessModel)
	if err != nil {
		return nil, err
	}
	functions := model.LoadFunctionMap()
	functions.AddFunction("applies", applies)
	matcher, err := govaluate.NewEvaluableExpressionWithFunctions(m["m"]["m"].Value, functions.GetFunctions())
	if err != nil {
		return nil, err
	}
	return &decider{matcher, m["e"]["e"].Value, effector.NewDefaultEffector(), sync.Pool{New: func() any { return &request{} }}, log}, nil
}

// applies is the function of the matcher: whether a rule is about the user and the path.
func applies(args ...any) (any, error) {
	r, ok1 := args[0].(*request)
	rule, ok2 := args[1].(*rules.Rule)
	return ok1 && ok2 && r.subjects.Contains(rule.Subject) && rules.Within(r.path, string(rule.Path)), nil
}

// verdict decides about a clean path. When a rule cannot be evaluated, access is denied.
func (d *decider) verdict(set *rules.Set, u models.DirectoryUser, subjects *rules.Subjects, path string) rules.Verdict {
	r, ok := d.requests.Get().(*request)
	if !ok {
		return d.denied(errors.New("storage: not a request"))
	}
	defer d.requests.Put(r)
	r.subjects, r.path = subjects, path
	r.list = set.Applicable(r.list[:0], subjects, path)
	access, err := d.first(r, accessEffect)
	if err == nil && access == nil {
		r.list = set.Layout(r.list[:0], u, subjects, path)
		access, err = d.first(r, accessEffect)
	}
	if err != nil {
		return d.denied(err)
	}
	download := access // being the first of all, it is also the first of those about downloads
	if access == nil || downloadEffect(access) == effector.Indeterminate {
		if download, err = d.first(r, downloadEffect); err != nil {
			return d.denied(err)
		}
	}
	return rules.Conclude(u, access, download)
}

func (d *decider) denied(err error) rules.Verdict {
	d.log().Error("a rule of shared storage cannot be evaluated; access is denied", "err", err)
	return rules.Conclude(models.DirectoryUser{}, nil, nil)
}

// first returns casbin's choice among the rules of a request, those with an effect.
func (d *decider) first(r *request, effect func(*rules.Rule) effector.Effect) (*rules.Rule, error) {
	r.candidates, r.effects, r.matches = r.candidates[:0], r.effects[:0], r.matches[:0]
	for _, rule := range r.list {
		if e := effect(rule); e != effector.Indeterminate {
			r.candidates, r.effects, r.matches = append(r.candidates, rule), append(r.effects, e), append(r.matches, 0)
		}
	}
	for i, rule := range r.candidates {
		r.rule = rule
		matches, err := d.matcher.Eval(r)
		if err != nil {
			return nil, err
		}
		if matches == true {
			r.matches[i] = 1
		}
		decided, chosen, err := d.effector.MergeEffects(d.effect, r.effects, r.matches, i, len(r.candidates))
		if err != nil {
			return nil, err
		}
		if decided != effector.Indeterminate {
			return r.candidates[chosen], nil
		}
	}
	return nil, nil
}

// accessEffect is the effect of a rule on the access.
func accessEffect(r *rules.Rule) effector.Effect {
	if r.Access.Includes(models.AccessRead) {
		return effector.Allow
	}
	return effector.Deny
}

// downloadEffect is the effect of a rule on downloads; Indeterminate if it has none.
func downloadEffect(r *rules.Rule) effector.Effect {
	switch r.Download {
	case models.DownloadAllow:
		return effector.Allow
	case models.DownloadDeny:
		return effector.Deny
	default:
		return effector.Indeterminate
	}
}
