package requests

import (
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/projects"
)

// review is a request within the transaction that submits or decides it.
type review struct {
	access     *policies.Access
	editor     projects.Editor
	q          *store.Queries
	actor      policies.Actor
	submitting bool // false: it is decided
	requester  models.User
	req        models.QuotaRequest
	terms      models.Requested  // requested, or as decided
	project    models.Project    // locked while it is decided
	baseline   *models.Resources // present amounts, of a request that changes them and is submitted
	member     int64             // needs a directory

	confirmation projects.Confirmation // of allocations above the capacity
}

func (s *Service) review(q *store.Queries, actor policies.Actor) *review {
	return &review{access: s.access, editor: s.projects.Within(q, actor), q: q, actor: actor}
}

// findProject finds the project of the request, within the actor's scope.
func (r *review) findProject() (err error) {
	var id int64
	if field := projectField(r.terms); field != nil {
		id = *field
	}
	switch {
	case r.terms.Project != nil && r.req.ProjectID == nil:
		return nil
	case !r.submitting:
		r.project, err = r.q.LockProject(r.actor.Scope(), idOrZero(r.req.ProjectID))
	case r.terms.Join != nil:
		err = r.findProjectToJoin()
	case r.terms.Deadline != nil: // also after the end of the membership
		var m models.Member
		if m, err = r.q.Membership(id, r.requester.ID); err == nil && m.RemovedAt == nil {
			r.project, err = r.q.Project(store.AllProjects, id)
			break
		}
		if err == nil || models.KindOf(err) == models.KindNotFound {
			err = models.NotFound("project")
		}
	default:
		r.project, err = r.q.Project(r.actor.Scope(), id)
		if err == nil && !r.actor.MemberOf(id) && !r.access.May(r.actor, id, policies.ProjectWrite) {
			err = models.Forbidden("Only members of a project can submit requests for it.") // an auditor sees it
		}
	}
	return err
}

func (r *review) findProjectToJoin() (err error) {
	join := r.terms.Join
	r.project, err = r.q.ProjectToJoin(join.ProjectID, join.Name)
	if join.ProjectID == 0 {
		err = models.NotFoundAs(err, models.Invalid("name", "is not the exact name of a project that accepts join requests"))
	}
	join.ProjectID, join.Name, join.RoleID = r.project.ID, r.project.Name, 0
	return err
}

// membership is the current membership of the requester.
func (r *review) membership() (models.Member, error) {
	m, err := r.q.Membership(r.project.ID, r.requester.ID)
	if err == nil && m.RemovedAt != nil {
		err = models.NotFound("member")
	}
	return m, err
}

// setSubject sets the request's project, role and member.
func (r *review) setSubject() {
	if r.project.ID != 0 {
		r.req.ProjectID = &r.project.ID
	}
	if limit := r.terms.Limit; limit != nil {
		r.req.RoleID = &limit.RoleID
	}
	if m, err := r.membership(); err == nil {
		r.req.MemberID = &m.ID
	}
}

// checkRaised refuses amounts of which none is raised. When they are decided on, it refuses to lower
// what was raised since, and those that change nothing any more can be approved.
func (r *review) checkRaised(field string, requested, present models.Resources) error {
	if r.submitting {
		r.baseline = &present
	} else if err := projects.CheckKept(field, requested, present, r.req.Baseline); err != nil || requested == present {
		return err
	}
	return projects.CheckRaised(field, requested, present)
}

// endsLater reports whether an end is later than the present one; when it is decided on, whether it is
// not earlier.
func endsLater(r *review, requested, present *time.Time) bool {
	same := requested == nil && present == nil || requested != nil && present != nil && requested.Equal(*present)
	return !r.submitting && same || projects.EndsLater(requested, present)
}
