package projects

import (
	"cmp"
	"context"
	"errors"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/quota"
)

// StartInput describes a project with its first roles.
type StartInput struct {
	Name    string                `json:"name" maxLength:"100"`
	Members int64                 `json:"members,omitempty" minimum:"0" maximum:"1000" doc:"number of members, including you, among whom the quota is divided; absent for 4, or for you and those invited if they are more"`
	Emails  []string              `json:"emails,omitempty" maxItems:"100" doc:"email addresses to invite with the role member"`
	Quota   models.ResourcesInput `json:"quota,omitempty" doc:"absent amounts are filled in as for a new project"`
	Confirmation
}

// usualMembers is the number of members where it is not given.
const usualMembers = 4

const maxStartMembers = 1000

// Check validates the input. What it can be filled with depends on the pool.
func (in StartInput) Check() error {
	p := in.problems()
	models.CheckName("name", in.Name, &p)
	return p.Err()
}

// problems are those of the input but its name, which a preview does not need.
func (in StartInput) problems() (p models.Problems) {
	in.Quota.Check("quota", &p)
	if in.Members < 0 || in.Members > maxStartMembers {
		p.Add("members", "must be from 1 to %d", maxStartMembers)
	}
	var e *models.Error
	if len(in.Emails) > 0 && errors.As((&InvitationInput{Emails: in.Emails}).Check(), &e) {
		p = append(p, e.Fields...)
	}
	return p
}

// Started is a new project with its first roles, and the membership of its creator.
type Started struct {
	Project       models.Project
	Owner, Member models.Role
	Membership    models.Member
	Invited       []Invited
}

// Start creates a project with the roles owner and member, which have an equal part of
// the quota for each member, makes the actor its owner, and invites email addresses as
// members: all of it or nothing.
func (s *Service) Start(ctx context.Context, actor policies.Actor, in StartInput) (v Started, err error) {
	err = s.access.Write(ctx, s.store, actor, policies.Platform, policies.ProjectWrite, func(q *store.Queries) (err error) {
		v, err = s.Within(q, actor).start(in)
		return err
	})
	if err == nil {
		s.MakeProjectDirectories(ctx, v.Project.ID)
		s.MakeMemberDirectory(ctx, v.Project.ID, v.Membership.ID)
	}
	return v, err
}

func (e Editor) start(in StartInput) (v Started, err error) {
	if err := in.Check(); err != nil {
		return v, err
	}
	if err := e.LockCapacity(); err != nil {
		return v, err
	}
	plan, err := e.planStart(in)
	if err != nil {
		return v, err
	}
	if v.Project, err = e.CreateProject(plan.project); err != nil {
		return v, err
	}
	for _, r := range []struct {
		role       *models.Role
		permission string
	}{{&v.Owner, models.PermissionOwner}, {&v.Member, models.PermissionMember}} {
		if *r.role, err = e.CreateRole(v.Project, RoleInput{Name: r.permission, Permission: r.permission,
			Limit: plan.limit.Input()}); err != nil {
			return v, err
		}
	}
	if v.Membership, err = e.AddMember(v.Project, MemberInput{Email: e.actor.User.Email, RoleID: v.Owner.ID}); err != nil ||
		len(in.Emails) == 0 {
		return v, err
	}
	v.Invited, err = e.Invite(v.Project, InvitationInput{Emails: in.Emails, RoleID: v.Member.ID})
	return v, err
}

// StartPreview is what Start would create.
type StartPreview struct {
	Quota   []Filled
	Limit   []Filled // of each member
	Members int64
	Beyond  []models.Text // by how much the quota exceeds the pool's capacity
}

// PreviewStart returns what Start would create, without any change. The name is not
// checked.
func (s *Service) PreviewStart(ctx context.Context, actor policies.Actor, in StartInput) (v StartPreview, err error) {
	if err := s.access.Check(actor, policies.Platform, policies.ProjectWrite); err != nil {
		return v, err
	}
	err = s.store.Snapshot(ctx, func(q *store.Queries) error {
		plan, err := s.Within(q, actor).planStart(in)
		if err != nil {
			return err
		}
		v = StartPreview{Quota: filledOf(plan.quota, plan.from), Limit: filledOf(plan.limit, perMember), Members: plan.members}
		v.Beyond, err = s.pool.beyond(q, plan.quota)
		return err
	})
	return v, err
}

// PreviewQuota returns the quota of a new project, with what is left open filled in,
// and by how much it exceeds the pool's capacity.
func (s *Service) PreviewQuota(ctx context.Context, actor policies.Actor, in models.ResourcesInput) (
	list []Filled, beyond []models.Text, err error) {
	if err := s.access.Check(actor, policies.Platform, policies.ProjectWrite); err != nil {
		return nil, nil, err
	}
	var p models.Problems
	if in.Check("quota", &p); len(p) > 0 {
		return nil, nil, p.Err()
	}
	err = s.store.Snapshot(ctx, func(q *store.Queries) error {
		filled, from, err := s.Within(q, actor).FillQuota(in, models.Project{})
		if err != nil {
			return err
		}
		list = filledOf(filled, from)
		beyond, err = s.pool.beyond(q, filled)
		return err
	})
	return list, beyond, err
}

var perMember = quota.Sources{quota.PerMember, quota.PerMember, quota.PerMember, quota.PerMember, quota.PerMember}

// startPlan is what Start creates.
type startPlan struct {
	project      ProjectInput
	quota, limit models.Resources
	from         quota.Sources
	members      int64
}

func (e Editor) planStart(in StartInput) (p startPlan, err error) {
	if err := in.problems().Err(); err != nil {
		return p, err
	}
	if p.quota, p.from, err = e.FillQuota(in.Quota, models.Project{}); err != nil {
		return p, err
	}
	most, least := mostMembers(p.quota), int64(1+len(in.Emails))
	p.members = cmp.Or(in.Members, max(min(usualMembers, most), least))
	p.limit = quota.Split(p.quota, p.members)
	p.project = ProjectInput{Name: in.Name, Quota: p.quota.Input(), Confirmation: in.Confirmation}
	if p.limit.GPUCores > 0 && p.limit.GPUMemoryMiB > 0 {
		p.project.Launch = models.LaunchParameters{GPUs: new(int64(1)), Cores: new(min(p.limit.GPUCores, 100))}
	}
	if p.members < least {
		return p, models.Invalid("members", "must be at least %d: you and those invited", least)
	}
	if p.members > most {
		return p, models.Invalid("members", "must be at most %d, so that each can launch a workspace with a part of the quota", most)
	}
	return p, nil
}

// mostMembers is among how many members a quota can be divided: each needs at least a
// hundredth of a CPU, 64 MiB and, if there are any, a GPU core with memory.
func mostMembers(total models.Resources) int64 {
	most := quota.Limits{Quota: total}.Fits(models.Resources{CPUMilli: 10, MemoryMiB: 64})
	if gpu := (quota.Limits{Quota: total}).Fits(models.Resources{GPUCores: 1}); gpu > 0 && (most < 0 || gpu < most) {
		most = gpu
	}
	if most < 0 || most > maxStartMembers {
		return maxStartMembers
	}
	return most
}
