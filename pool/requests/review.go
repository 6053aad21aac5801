package requests

import (
	"encoding/json"
	"errors"
	"time"

	"weir/models"
	"weir/policies"
	"weir/pool/projects"
	"weir/pool/quota"
)

// review is a request within a transaction, while it is asked or decided.
type review struct {
	access    *policies.Access
	edit      projects.Editor
	q         *models.Queries
	actor     policies.Actor
	asking    bool // otherwise it is decided
	requester models.User
	req       models.QuotaRequest
	terms     models.Asked   // what would be granted
	project   models.Project // that it is about; locked while it is decided
	member    int64          // whose directory is to be made
}

func (s *Service) review(q *models.Queries, actor policies.Actor) *review {
	return &review{access: s.access, edit: s.projects.Within(q, actor), q: q, actor: actor}
}

// proposal is what differs between the kinds of requests. Fields are named as in
// the input of the kind.
type proposal interface {
	// examine refuses what no rule would allow, whoever decides.
	examine(h *review) error
	// growth is what applying it adds to the quotas of projects.
	growth(h *review) models.Resources
	// apply does it.
	apply(h *review) error
}

func (h *review) proposal() proposal {
	switch t := h.terms; t.Kind() {
	case models.AskForProject:
		return projectProposal{t.Project}
	case models.AskForQuota:
		return quotaProposal{t.Quota}
	case models.AskForRole:
		return roleProposal{AskRole: t.Role}
	case models.AskForPeak:
		return limitProposal{AskPeak: t.Peak}
	case models.AskForPeriod:
		return periodProposal{t.Period}
	case models.AskForDeadline:
		return deadlineProposal{AskDeadline: t.Deadline}
	default:
		return joinProposal{AskJoin: t.Join}
	}
}

// open finds the project that the request is about. To who may not see it, it
// does not exist.
func (h *review) open() (err error) {
	id := projectOf(h.terms)
	switch {
	case h.terms.Project != nil && h.req.ProjectID == nil:
		return nil
	case !h.asking:
		h.project, err = h.q.LockProject(h.actor.Scope(), at(h.req.ProjectID))
	case h.terms.Join != nil:
		err = h.openToJoin()
	case h.terms.Deadline != nil: // which may be over
		var m models.Member
		if m, err = h.q.Membership(id, h.requester.ID); err == nil && m.RemovedAt == nil {
			h.project, err = h.q.Project(models.Everything, id)
			break
		}
		if err == nil || models.KindOf(err) == models.KindNotFound {
			err = models.NotFound("project")
		}
	default:
		h.project, err = h.q.Project(h.actor.Scope(), id)
		if err == nil && !h.actor.MemberOf(id) && !h.access.May(h.actor, id, "project", "write") {
			err = models.Forbidden("Only members of a project ask for something in it.") // an auditor sees it
		}
	}
	return err
}

func (h *review) openToJoin() (err error) {
	join := h.terms.Join
	h.project, err = h.q.ProjectToJoin(join.ProjectID, join.Name)
	if join.ProjectID == 0 {
		err = models.NotFoundAs(err, models.Invalid("name", "is not the exact name of a project that can be asked for a place"))
	}
	join.ProjectID, join.Name, join.RoleID = h.project.ID, h.project.Name, 0
	return err
}

// concern notes in the request what it is about.
func (h *review) concern() {
	if h.project.ID != 0 {
		h.req.ProjectID = &h.project.ID
	}
	if peak := h.terms.Peak; peak != nil {
		h.req.RoleID = &peak.RoleID
	}
	if m, err := h.q.Membership(h.project.ID, h.requester.ID); err == nil && m.RemovedAt == nil {
		h.req.MemberID = &m.ID
	}
}

// projectOf is the project that an input names; 0 when it names none.
func projectOf(a models.Asked) int64 {
	switch {
	case a.Quota != nil:
		return a.Quota.ProjectID
	case a.Role != nil:
		return a.Role.ProjectID
	case a.Peak != nil:
		return a.Peak.ProjectID
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
func about(decided, asked models.Asked) models.Asked {
	d := decided.Clone()
	switch {
	case d.Quota != nil:
		d.Quota.ProjectID = asked.Quota.ProjectID
	case d.Role != nil:
		d.Role.ProjectID = asked.Role.ProjectID
	case d.Peak != nil:
		d.Peak.ProjectID, d.Peak.RoleID = asked.Peak.ProjectID, asked.Peak.RoleID
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
func normal(a models.Asked) models.Asked {
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
func same(decided, asked models.Asked) bool {
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

// moreThan refuses to ask for nothing more than there is.
func moreThan(field string, asked, present models.Resources) error {
	if len(quota.Exceeded(asked, present)) > 0 {
		return nil
	}
	return models.Invalid(field+".gpu_cores", "of no resource is more asked for than there is now")
}
