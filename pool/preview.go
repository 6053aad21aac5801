package pool

import (
	"context"
	"errors"
	"strings"

	"weir/models"
	"weir/policies"
)

// PreviewInput is a change of what a project's members are promised: exactly
// one of Role, Member and Quota is set.
type PreviewInput struct {
	Role   *RolePreview      `json:"role,omitempty" doc:"a new role, or another peak of one"`
	Member *MemberPreview    `json:"member,omitempty" doc:"a new member, or another role of one"`
	Quota  *models.Resources `json:"quota,omitempty" doc:"another quota, the whole of it"`

	// Asked is set when somebody else would be asked for the change: whether
	// the actor might make it does not count.
	Asked bool `json:"-"`
}

// RolePreview is a role as it would be.
type RolePreview struct {
	RoleID int64            `json:"role_id,omitempty" minimum:"1" doc:"absent: a new role"`
	Peak   models.Resources `json:"peak" doc:"the most that a member in this role may hold at once"`
}

// MemberPreview is a member as it would be.
type MemberPreview struct {
	MemberID int64  `json:"member_id,omitempty" minimum:"1" doc:"absent: a new member"`
	Email    string `json:"email,omitempty" maxLength:"254" doc:"of a new member, when it is known"`
	RoleID   int64  `json:"role_id" minimum:"1"`
}

// Preview is what a change would make of a project's quota. It is reckoned by
// what the change itself is held to, and promises nothing: others may be
// faster.
type Preview struct {
	Rows    []PreviewRow
	Members int64 // whose promise changes
	Room    int64 // members that could be added in the role afterwards; -1: as many as there are
	Holders []Holder
	Refused *models.Error // why it would be refused; nil: it would not be
}

// PreviewRow is one resource; Value is what would be promised.
type PreviewRow struct {
	models.Amount
	Before int64 // what is promised now
	Quota  int64 // as it would be
	Over   bool  // it is why the change would be refused
}

// Left is what the quota would have for further peaks; negative when it would
// be exceeded.
func (r PreviewRow) Left() int64 { return r.Quota - r.Value }

// Preview tells what a change of a role, a member or the quota would make of
// the project's quota, and whether it would be refused. Who may see the
// project may ask; about members, who may change them. To who may not make the
// change it tells whether its numbers would fit.
func (l *Ledger) Preview(ctx context.Context, actor policies.Actor, project int64, in PreviewInput) (v Preview, err error) {
	act, obj := "read", "project"
	if in.Member != nil {
		act, obj = "write", "member" // it tells who has an account
	}
	if err := l.access.Check(actor, project, obj, act); err != nil {
		return v, err
	}
	maker := actor
	if in.Asked || in.Role != nil && !l.access.May(actor, project, "role", "write") {
		maker = policies.System("preview") // whom no rule on granting holds back
	}
	return l.previewBy(ctx, actor.Scope(), maker, project, in)
}

// previewBy is Preview of a change that maker would make, for who may know it.
func (l *Ledger) previewBy(ctx context.Context, scope models.Scope, maker policies.Actor, project int64, in PreviewInput) (v Preview, err error) {
	err = l.store.Snapshot(ctx, func(q *models.Queries) error {
		p, err := q.Project(scope, project)
		if err != nil {
			return err
		}
		v, err = l.preview(q, maker, p, in)
		return err
	})
	return v, err
}

// change is what a preview is about.
type change struct {
	more    models.Resources // promised in addition, to all members
	members int64
	peak    *models.Resources // of the role, if there is one
	holders []Holder
}

func (l *Ledger) preview(q *models.Queries, actor policies.Actor, p models.Project, in PreviewInput) (v Preview, err error) {
	promised, err := q.PromisedPeaks(p.ID)
	if err != nil {
		return v, err
	}
	var c change
	var refusal error
	switch {
	case in.Role != nil && in.Member == nil && in.Quota == nil:
		c, refusal = l.previewRole(q, actor, p, *in.Role)
	case in.Member != nil && in.Role == nil && in.Quota == nil:
		c, refusal = l.previewMember(q, actor, p, *in.Member)
	case in.Quota != nil && in.Role == nil && in.Member == nil:
		p.Quota = *in.Quota
		refusal = quotaFits(q, p)
	default:
		return v, models.Invalid("role", "give exactly one of role, member and quota")
	}
	if v.Refused, err = refused(refusal); err != nil {
		return v, err
	}
	v.Members, v.Holders = c.members, c.holders
	v.reckon(p.Quota, promised, promised.Add(c.more))
	v.room(c.peak)
	return v, nil
}

func quotaFits(q *models.Queries, p models.Project) error {
	var problems models.Problems
	if p.Quota.Check("quota", &problems); len(problems) > 0 {
		return problems.Err()
	}
	return quotaCovers(q, p)
}

// refused sorts what the input or the state forbids from other errors.
func refused(err error) (*models.Error, error) {
	var e *models.Error
	if errors.As(err, &e) {
		switch e.Kind {
		case models.KindInvalid, models.KindNoCapacity, models.KindConflict, models.KindForbidden:
			return e, nil
		}
	}
	return nil, err
}

func (l *Ledger) previewRole(q *models.Queries, actor policies.Actor, p models.Project, in RolePreview) (c change, err error) {
	var problems models.Problems
	if in.Peak.Check("peak", &problems); len(problems) > 0 {
		return c, problems.Err()
	}
	c.peak = &in.Peak
	if in.RoleID == 0 {
		return c, peakWithin(in.Peak, p.Quota)
	}
	before, err := q.Role(models.Everything, p.ID, in.RoleID)
	if err != nil {
		return c, err
	}
	after := before
	after.Peak = in.Peak
	if c.members, err = q.RoleMembers(p.ID, after.ID); err != nil {
		return c, err
	}
	c.more = after.Peak.Sub(before.Peak).Times(c.members)
	if c.holders, err = holdMore(q, after); err != nil {
		return c, err
	}
	if err := l.grantsRole(q, actor, before); err != nil {
		return c, err
	}
	return c, l.peakFits(q, p, before, after)
}

func (l *Ledger) previewMember(q *models.Queries, actor policies.Actor, p models.Project, in MemberPreview) (c change, err error) {
	next, err := q.Role(models.Everything, p.ID, in.RoleID)
	if err != nil {
		return c, asField(err, models.Invalid("role_id", "is not a role of this project"))
	}
	c.peak, c.members, c.more = &next.Peak, 1, next.Peak
	if in.MemberID == 0 {
		return c, l.previewNewcomer(q, actor, p, next, in.Email)
	}
	m, err := q.Member(models.Everything, p.ID, in.MemberID)
	if err != nil {
		return c, err
	}
	old, err := q.Role(models.Everything, p.ID, m.RoleID)
	if err != nil {
		return c, err
	}
	c.more = next.Peak.Sub(old.Peak)
	return c, l.roleFits(q, actor, p, m, next.ID)
}

func (l *Ledger) previewNewcomer(q *models.Queries, actor policies.Actor, p models.Project, r models.Role, email string) error {
	if email == "" {
		return promiseFits(q, p, r.Peak, "role_id", 1)
	}
	u, err := personAt(q, email)
	if err != nil {
		return err
	}
	if err := l.grantsPlace(q, actor, u.ID, r); err != nil {
		return err
	}
	if err := promiseFits(q, p, r.Peak, "role_id", 1); err != nil {
		return err
	}
	m, err := q.Membership(p.ID, u.ID)
	if models.KindOf(err) == models.KindNotFound && err != nil {
		return nil
	}
	if err != nil {
		return err
	}
	return mayReturn(q, m, r)
}

// reckon fills in the rows.
func (v *Preview) reckon(quota, before, after models.Resources) {
	quotas, befores := quota.Amounts(), before.Amounts()
	for i, a := range after.Amounts() {
		v.Rows = append(v.Rows, PreviewRow{Amount: a, Before: befores[i].Value, Quota: quotas[i].Value,
			Over: a.Value > quotas[i].Value || v.refuses(a.Name)})
	}
}

// refuses tells whether a resource is named by the refusal.
func (v *Preview) refuses(resource string) bool {
	if v.Refused == nil {
		return false
	}
	for _, f := range v.Refused.Fields {
		if strings.HasSuffix(f.Name, "."+resource) {
			return true
		}
	}
	return false
}

// room counts how often a peak fits into what would be left.
func (v *Preview) room(peak *models.Resources) {
	v.Room = -1
	if peak == nil {
		return
	}
	for i, a := range peak.Amounts() {
		if a.Value <= 0 {
			continue
		}
		if n := max(v.Rows[i].Left(), 0) / a.Value; v.Room < 0 || n < v.Room {
			v.Room = n
		}
	}
}
