package requests

import (
	"encoding/json"
	"errors"
	"time"

	"weir/models"
)

// projectField is the project ID of the terms; nil for a new project.
func projectField(a models.Requested) *int64 {
	switch {
	case a.Quota != nil:
		return &a.Quota.ProjectID
	case a.Role != nil:
		return &a.Role.ProjectID
	case a.Limit != nil:
		return &a.Limit.ProjectID
	case a.Period != nil:
		return &a.Period.ProjectID
	case a.Deadline != nil:
		return &a.Deadline.ProjectID
	case a.Join != nil:
		return &a.Join.ProjectID
	}
	return nil
}

// withTarget is the terms of a decision for the project and role of the request.
// Amounts that they leave open are as requested.
func withTarget(decided, requested models.Requested) models.Requested {
	d := decided.Clone()
	if id := projectField(d); id != nil {
		*id = *projectField(requested)
	}
	switch {
	case d.Project != nil:
		d.Project.Quota, d.Project.Limit = d.Project.Quota.Or(requested.Project.Quota), d.Project.Limit.Or(requested.Project.Limit)
	case d.Quota != nil:
		d.Quota.Quota = d.Quota.Quota.Or(requested.Quota.Quota)
	case d.Role != nil:
		d.Role.Limit = d.Role.Limit.Or(requested.Role.Limit)
	case d.Limit != nil:
		d.Limit.RoleID, d.Limit.Limit = requested.Limit.RoleID, d.Limit.Limit.Or(requested.Limit.Limit)
	}
	if d.Join != nil {
		d.Join.Name = requested.Join.Name
	}
	return d
}

// normalized is a copy with times as precise as in the databases.
func normalized(a models.Requested) models.Requested {
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

// same reports whether a decision grants the request unchanged. The role of a join
// request is not part of it.
func same(decided, requested models.Requested) bool {
	if decided = decided.Clone(); decided.Join != nil {
		decided.Join.RoleID = 0
	}
	d, err1 := json.Marshal(decided)
	r, err2 := json.Marshal(requested)
	return err1 == nil && err2 == nil && string(d) == string(r)
}

// prefixed prefixes the fields of an error with the kind of the request; renamed are
// pairs of old and new names.
func prefixed(kind string, err error, renamed ...string) error {
	e, ok := errors.AsType[*models.Error](err)
	if !ok || len(e.Fields) == 0 {
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
		if kind != "" && f.Name != "confirm" && f.Name != "reason" { // which are the decision's
			f.Name = kind + "." + f.Name
		}
		moved.Fields[i] = f
	}
	return &moved
}

// joined adds the fields of a service's error to problems.
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
