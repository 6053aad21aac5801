package requests

import (
	"encoding/json"
	"errors"
	"time"

	"weir/models"
	"weir/pool/quota"
)

// projectOf is the project that an input names; 0 when it names none.
func projectOf(a models.Requested) int64 {
	switch {
	case a.Quota != nil:
		return a.Quota.ProjectID
	case a.Role != nil:
		return a.Role.ProjectID
	case a.Limit != nil:
		return a.Limit.ProjectID
	case a.Period != nil:
		return a.Period.ProjectID
	case a.Deadline != nil:
		return a.Deadline.ProjectID
	case a.Join != nil:
		return a.Join.ProjectID
	}
	return 0
}

// about is what a decision grants, about the things that were asked for.
func about(decided, asked models.Requested) models.Requested {
	d := decided.Clone()
	switch {
	case d.Quota != nil:
		d.Quota.ProjectID = asked.Quota.ProjectID
	case d.Role != nil:
		d.Role.ProjectID = asked.Role.ProjectID
	case d.Limit != nil:
		d.Limit.ProjectID, d.Limit.RoleID = asked.Limit.ProjectID, asked.Limit.RoleID
	case d.Period != nil:
		d.Period.ProjectID = asked.Period.ProjectID
	case d.Deadline != nil:
		d.Deadline.ProjectID = asked.Deadline.ProjectID
	case d.Join != nil:
		d.Join.ProjectID, d.Join.Name = asked.Join.ProjectID, asked.Join.Name
	}
	return d
}

// normal is an input with its times as the databases keep them.
func normal(a models.Requested) models.Requested {
	a = a.Clone()
	if a.Project != nil {
		a.Project.StartsAt, a.Project.EndsAt = rounded(a.Project.StartsAt), rounded(a.Project.EndsAt)
	}
	if a.Period != nil {
		a.Period.EndsAt = rounded(a.Period.EndsAt)
	}
	if a.Deadline != nil {
		a.Deadline.Until = rounded(a.Deadline.Until)
	}
	if a.Join != nil {
		a.Join.Until = rounded(a.Join.Until)
	}
	return a
}

func rounded(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	k := t.UTC().Truncate(time.Microsecond)
	return &k
}

// same tells whether a decision grants just what was asked. The role of who
// joins is never asked for.
func same(decided, asked models.Requested) bool {
	if decided = decided.Clone(); decided.Join != nil {
		decided.Join.RoleID = 0
	}
	d, err1 := json.Marshal(decided)
	a, err2 := json.Marshal(asked)
	return err1 == nil && err2 == nil && string(d) == string(a)
}

// under names the fields of a refusal by their place in the whole input;
// renamed are pairs of those that are called otherwise there.
func under(kind string, err error, renamed ...string) error {
	var e *models.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return err
	}
	moved := *e
	moved.Fields = make([]models.Field, len(e.Fields))
	for i, f := range e.Fields {
		for j := 0; j < len(renamed); j += 2 {
			if f.Name == renamed[j] {
				f.Name = renamed[j+1]
			}
		}
		if kind != "" {
			f.Name = kind + "." + f.Name
		}
		moved.Fields[i] = f
	}
	return &moved
}

// joined adds the fields that a service refused to those found before.
func joined(p models.Problems, err error) error {
	e, ok := err.(*models.Error)
	switch {
	case len(p) == 0, err != nil && (!ok || e.Kind != models.KindInvalid):
		return err
	case ok && e != nil:
		p = append(p, e.Fields...)
	}
	return p.Err()
}

// moreThan refuses to ask for nothing more than there is.
func moreThan(field string, asked, present models.Resources) error {
	if len(quota.Exceeded(asked, present)) > 0 {
		return nil
	}
	return models.Invalid(field+".gpu_cores", "must exceed the current amount for at least one resource")
}
