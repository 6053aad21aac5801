package storage

import (
	_ "embed"
	"errors"
	"log/slog"
	"sync"

	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"

	"weir/models"
	"weir/storage/rules"
)

//go:embed access.conf
var accessModel string

// decider evaluates rules with casbin. The index of [rules.Set] selects the few rules of
// a path, so that the cost of a decision does not depend on the number of rules;
// casbin's matcher and its priority effect decide among them.
type decider struct{ enforcers sync.Pool }

// enforcer is one of casbin's with the buffers of a decision.
type enforcer struct {
	*casbin.Enforcer
	policies *model.Assertion
	rows     [][]string
	list     []rules.Rule
}

func newDecider() (*decider, error) {
	m, err := model.NewModelFromString(accessModel)
	if err != nil {
		return nil, err
	}
	if _, err := newEnforcer(m.Copy()); err != nil {
		return nil, err
	}
	return &decider{sync.Pool{New: func() any {
		e, err := newEnforcer(m.Copy())
		if err != nil {
			return err
		}
		return e
	}}}, nil
}

func newEnforcer(m model.Model) (*enforcer, error) {
	e, err := casbin.NewEnforcer(m)
	if err != nil {
		return nil, err
	}
	e.AddFunction("applies", applies)
	return &enforcer{Enforcer: e, policies: e.GetModel()["p"]["p"]}, nil
}

// applies is the matcher: whether a rule is about the user and the path.
func applies(args ...any) (any, error) {
	subjects, ok1 := args[0].(*rules.Subjects)
	path, ok2 := args[1].(string)
	subject, ok3 := args[2].(string)
	dir, ok4 := args[3].(string)
	return ok1 && ok2 && ok3 && ok4 && subjects.Contains(subject) && rules.Within(path, dir), nil
}

// verdict decides about a clean path. When a rule cannot be evaluated, access is denied.
func (d *decider) verdict(set *rules.Set, u models.DirectoryUser, subjects *rules.Subjects, path string) rules.Verdict {
	e, ok := d.enforcers.Get().(*enforcer)
	if !ok {
		return denied(errors.New("storage: casbin has no enforcer"))
	}
	defer d.enforcers.Put(e)
	e.list = set.Applicable(e.list[:0], u, subjects, path)
	access, err := e.first(subjects, path, accessEffect)
	if err != nil {
		return denied(err)
	}
	download := access // being the first of all, it is also the first of those about downloads
	if access == nil || downloadEffect(*access) == "" {
		if download, err = e.first(subjects, path, downloadEffect); err != nil {
			return denied(err)
		}
	}
	return rules.Conclude(u, access, download)
}

func denied(err error) rules.Verdict {
	slog.Error("a rule of shared storage cannot be evaluated; access is denied", "err", err)
	return rules.Conclude(models.DirectoryUser{}, nil, nil)
}

// first returns casbin's choice among e.list, those with an effect.
func (e *enforcer) first(subjects *rules.Subjects, path string, effect func(rules.Rule) string) (*rules.Rule, error) {
	e.policies.Policy = e.policies.Policy[:0]
	for i, r := range e.list {
		eft := effect(r)
		if eft == "" {
			continue
		}
		if i >= len(e.rows) {
			e.rows = append(e.rows, make([]string, 3))
		}
		row := e.rows[len(e.policies.Policy)]
		row[0], row[1], row[2] = r.Subject, string(r.Path), eft
		e.policies.Policy = append(e.policies.Policy, row)
	}
	if len(e.policies.Policy) == 0 {
		return nil, nil
	}
	_, chosen, err := e.EnforceEx(subjects, path)
	if err != nil || len(chosen) == 0 {
		return nil, err
	}
	for i, r := range e.list {
		if r.Subject == chosen[0] && string(r.Path) == chosen[1] && effect(r) != "" {
			return &e.list[i], nil
		}
	}
	return nil, errors.New("storage: casbin chose an unknown rule")
}

// accessEffect is the effect of a rule on the access.
func accessEffect(r rules.Rule) string {
	if r.Access.Includes(models.AccessRead) {
		return "allow"
	}
	return "deny"
}

// downloadEffect is the effect of a rule on downloads; "" if it has none.
func downloadEffect(r rules.Rule) string {
	if r.Download == models.DownloadInherit {
		return ""
	}
	return string(r.Download)
}
