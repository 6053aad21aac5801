package projects

import (
	"context"
	"slices"
	"strings"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/quota"
)

// PreviewInput is a change of a role, a member or the quota; exactly one is set.
type PreviewInput struct {
	Role   *RolePreview           `json:"role,omitempty" doc:"new role, or change of a role's limit"`
	Member *MemberPreview         `json:"member,omitempty" doc:"new member, or change of a member's role"`
	Quota  *models.ResourcesInput `json:"quota,omitempty" doc:"new total quota"`
	Period *PeriodPreview         `json:"period,omitempty" doc:"with a quota: another end of the period of use; absent if it does not change"`

	// Requested previews the change by an approver, without the actor's permissions.
	Requested bool `json:"-"`

	// Baseline is that of the request that is decided, if any, and Asked what it asks for; see
	// CheckKept and AsRequested.
	Baseline *models.Resources     `json:"-"`
	Asked    models.ResourcesInput `json:"-"`
}

// PeriodPreview is the end of a period of use after the change.
type PeriodPreview struct {
	EndsAt *time.Time `json:"ends_at,omitempty" doc:"end of the period of use; absent if open-ended"`
}

// RolePreview is a role after the change.
type RolePreview struct {
	RoleID int64                 `json:"role_id,omitempty" minimum:"1" doc:"role ID; absent for a new role"`
	Limit  models.ResourcesInput `json:"limit,omitempty" doc:"limit per member"`

	// Of a new role, or after the change; of a role without a permission the present ones.
	Permission  string   `json:"permission,omitempty" enum:"owner,manager,member,viewer,custom"`
	Permissions []string `json:"permissions,omitempty" doc:"permissions of a custom role"`
}

// permits is the permissions after the change of a role with the given ones.
func (in RolePreview) permits(present models.Permissions) models.Permissions {
	custom, err := models.ParsePermissions(in.Permissions)
	if in.Permission == "" || err != nil {
		return present
	}
	return models.PermissionsOf(in.Permission, custom)
}

// MemberPreview is a member after the change.
type MemberPreview struct {
	MemberID int64  `json:"member_id,omitempty" minimum:"1" doc:"member ID; absent for a new member"`
	Email    string `json:"email,omitempty" maxLength:"254" doc:"email address of a new member, if known"`
	RoleID   int64  `json:"role_id" minimum:"1"`
}

// Preview is the effect of a change on a project's quota, computed with the rules
// of the change itself.
type Preview struct {
	Rows      []PreviewRow
	Filled    []Filled // the quota or limit after the change; empty for members
	Members   int64    // whose limit changes
	Fits      int64    // members that could be added with the role afterwards; -1 for any number
	OverLimit []MemberOverLimit
	Refused   *models.Error // why the change would be refused; nil if it would not
	Beyond    []models.Text // by how much a requested quota exceeds the pool's capacity
}

// PreviewRow is one resource; Value is the allocation after the change.
type PreviewRow struct {
	models.Amount
	Before int64 // current allocation
	Quota  int64 // after the change
	Over   bool  // a reason of the refusal
}

// Remaining is the unallocated quota after the change; negative if exceeded.
func (r PreviewRow) Remaining() int64 {
	if models.IsUnlimited(r.Quota) {
		return models.Unlimited
	}
	return r.Quota - r.Value
}

// Preview returns the effect of a change of a role, a member or the quota, and
// whether it would be refused. It requires the right to read the project, and for
// members the right to change them. For an actor who may not change roles it
// previews the change by an approver.
func (s *Service) Preview(ctx context.Context, actor policies.Actor, project int64, in PreviewInput) (v Preview, err error) {
	right := policies.ProjectRead
	if in.Member != nil {
		right = policies.MemberWrite // it reveals who has an account
	}
	if err := s.access.Check(actor, project, right); err != nil {
		return v, err
	}
	maker := actor
	if in.Requested || in.Role != nil && !s.access.May(actor, project, policies.RoleWrite) {
		maker = policies.System("preview") // who may grant all permissions
	}
	p, err := s.store.Read(ctx).Project(actor.Scope(), project)
	if err != nil {
		return v, err
	}
	return s.PreviewBy(ctx, maker, p, in)
}

// PreviewBy is Preview of a change by maker of a project that was read just now,
// without checking permissions.
func (s *Service) PreviewBy(ctx context.Context, maker policies.Actor, p models.Project, in PreviewInput) (v Preview, err error) {
	err = s.store.Snapshot(ctx, func(q *store.Queries) error {
		v, err = s.Within(q, maker).preview(p, in)
		return err
	})
	return v, err
}

// effect is the effect of a change.
type effect struct {
	more      models.Resources // additional allocation, of all members
	members   int64
	limit     *models.Resources // of the role, if any
	filled    []Filled
	overLimit []MemberOverLimit
}

func (e Editor) preview(p models.Project, in PreviewInput) (v Preview, err error) {
	allocated, err := e.q.AllocatedLimits(p.ID)
	if err != nil {
		return v, err
	}
	before := p
	var c effect
	var refusal error
	switch {
	case in.Role != nil && in.Member == nil && in.Quota == nil:
		c, refusal = e.previewRole(p, allocated, in)
	case in.Member != nil && in.Role == nil && in.Quota == nil:
		c, refusal = e.previewMember(p, *in.Member)
	case in.Quota != nil && in.Role == nil && in.Member == nil:
		c, refusal = e.previewQuota(&p, in)
	default:
		return v, models.Invalid("role", "specify exactly one of role, member and quota")
	}
	if v.Refused, err = policies.AsRefusal(refusal); err != nil {
		return v, err
	}
	v.Members, v.OverLimit, v.Filled, v.Fits = c.members, c.overLimit, c.filled, -1
	after := quota.Limits{Quota: p.Quota, Allocated: allocated.Add(c.more)}
	v.fillRows(allocated, after)
	if in.Quota != nil && !in.Requested && e.access.May(e.actor, policies.Platform, policies.CapacityRead) {
		v.Beyond, err = e.pool.beyond(e.q, Growth(before, p, e.q.Now()))
	}
	if c.limit != nil {
		v.Fits = after.Fits(*c.limit)
	}
	return v, err
}

// previewQuota sets the project's quota and period to the new ones.
func (e Editor) previewQuota(p *models.Project, in PreviewInput) (c effect, err error) {
	before := *p
	if in.Period != nil {
		p.EndsAt = in.Period.EndsAt
	}
	var problems models.Problems
	if in.Quota.Check("quota", &problems); len(problems) > 0 {
		p.Quota = in.Quota.Resources()
		return c, problems.Err()
	}
	filled, from, err := e.FillQuota(*in.Quota, before)
	if err != nil {
		return c, err
	}
	present := p.Quota
	filled = AsRequested(filled, present, in.Asked, in.Baseline)
	p.Quota, c.filled = filled, filledOf(filled, from)
	if err := in.checkRaised("quota", filled, present); err != nil {
		return c, err
	}
	return c, checkQuota(e.q, *p)
}

func (e Editor) previewRole(p models.Project, allocated models.Resources, about PreviewInput) (c effect, err error) {
	in := *about.Role
	var problems models.Problems
	if in.Limit.Check("limit", &problems); len(problems) > 0 {
		return c, problems.Err()
	}
	var before models.Role
	present := models.PermissionsOf(models.StandardPermissions[0], 0) // which the form of a new role selects
	if in.RoleID != 0 {
		if before, err = e.q.Role(store.AllProjects, p.ID, in.RoleID); err != nil {
			return c, err
		}
		present = before.Permits()
	}
	limit, from := FillLimit(in.Limit, p.Quota, in.permits(present))
	if in.RoleID != 0 {
		limit = AsRequested(limit, before.Limit, about.Asked, about.Baseline)
	}
	c.limit, c.filled = &limit, filledOf(limit, from)
	if in.RoleID == 0 {
		return c, CheckLimit(limit, p.Quota)
	}
	if err := about.checkRaised("limit", limit, before.Limit); err != nil {
		return c, err
	}
	after := before
	after.Limit = limit
	change, err := readLimitChange(e.q, p, allocated, before, after)
	if err != nil {
		return c, err
	}
	c.members, c.more, c.overLimit = change.members, change.more(), change.above
	if err := e.grantsRole(before); err != nil {
		return c, err
	}
	return c, change.check()
}

// checkRaised is CheckRaised for a request whose amounts are no longer the present ones, and CheckKept
// for its approval.
func (in PreviewInput) checkRaised(field string, requested, present models.Resources) error {
	if !in.Requested || requested == present {
		return CheckKept(field, requested, present, in.Baseline)
	}
	return CheckRaised(field, requested, present)
}

func (e Editor) previewMember(p models.Project, in MemberPreview) (c effect, err error) {
	next, err := e.q.Role(store.AllProjects, p.ID, in.RoleID)
	if err != nil {
		return c, models.NotFoundAs(err, roleNotFound())
	}
	c.limit, c.members, c.more = &next.Limit, 1, next.Limit
	if in.MemberID == 0 {
		return c, e.previewNewMember(p, next, in.Email)
	}
	m, err := e.q.Member(store.AllProjects, p.ID, in.MemberID)
	if err != nil {
		return c, err
	}
	old, err := e.q.Role(store.AllProjects, p.ID, m.RoleID)
	if err != nil {
		return c, err
	}
	c.more = next.Limit.Sub(old.Limit)
	return c, e.checkRoleChange(p, m, next.ID)
}

func (e Editor) previewNewMember(p models.Project, r models.Role, email string) error {
	if email == "" {
		return checkAllocated(e.q, p, r.Limit, 1)
	}
	u, err := e.q.PersonByEmail(email)
	if err != nil {
		return err
	}
	if err := e.checkNewMember(p, u.ID, r); err != nil {
		return err
	}
	m, err := e.q.Membership(p.ID, u.ID)
	if err != nil {
		return models.IgnoreNotFound(err)
	}
	return checkRejoin(e.q, m, r)
}

// fillRows sets the rows from the allocation before and after the change.
func (v *Preview) fillRows(before models.Resources, after quota.Limits) {
	quotas, befores := after.Quota.Amounts(), before.Amounts()
	for i, a := range after.Allocated.Amounts() {
		r := PreviewRow{Amount: a, Before: befores[i].Value, Quota: quotas[i].Value}
		r.Over = r.Remaining() < 0 || v.refuses(a.Name)
		v.Rows = append(v.Rows, r)
	}
}

// refuses reports whether the refusal names a resource.
func (v *Preview) refuses(resource string) bool {
	return v.Refused != nil && slices.ContainsFunc(v.Refused.Fields, func(f models.Field) bool {
		return strings.HasSuffix(f.Name, "."+resource)
	})
}
