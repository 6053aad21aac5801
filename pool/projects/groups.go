package projects

import (
	"context"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// signIn is the actor of changes that follow from an identity provider's groups.
var signIn = policies.System("sign-in")

// SyncResult is the result of SyncGroups.
type SyncResult struct {
	Changed bool          // permissions have changed
	Notes   []models.Text // messages to the user: what was not done, and why
}

// SyncGroups updates the memberships of a user who signs in from the roles of the
// user's groups. In each project the user gets the first role that fits, under the
// rules for members. A membership from a group ends with the last group that
// assigns a role in the project. Other memberships are not changed.
func (s *Service) SyncGroups(ctx context.Context, i models.Identity, wanted []policies.ProjectRole) (f SyncResult, err error) {
	q := s.store.Read(ctx)
	var projects []int64
	roles := map[int64][]string{}
	for _, w := range wanted {
		p, err := q.ProjectByName(store.AllProjects, w.Project)
		if models.KindOf(err) == models.KindNotFound {
			f.Notes = append(f.Notes, models.Say("Your group gives you access to the project %s, which does not exist.", w.Project))
			continue
		}
		if err != nil {
			return f, err
		}
		projects = append(projects, p.ID)
		roles[p.ID] = append(roles[p.ID], w.Role)
	}
	given, err := q.ProjectsGrantedByIdentity(i.ID)
	if err != nil {
		return f, err
	}
	done := map[int64]bool{}
	for _, id := range append(projects, given...) {
		if done[id] {
			continue
		}
		done[id] = true
		if err := s.syncGroupsIn(ctx, i, id, roles[id], &f); err != nil {
			return f, err
		}
	}
	return f, nil
}

// groupMembership is a membership within the transaction that updates it from groups.
type groupMembership struct {
	Editor
	identity models.Identity
	project  models.Project
	member   models.Member
	present  bool
	given    bool // by a group
}

func (s *Service) syncGroupsIn(ctx context.Context, i models.Identity, project int64, roles []string, f *SyncResult) error {
	var member int64 // new, or with another role
	var notes []models.Text
	changed := false
	err := s.store.InRevokingTx(ctx, func(q *store.Queries) error {
		member, notes, changed = 0, nil, false
		at, err := groupMembershipOf(s.Within(q, signIn), i, project)
		if err != nil || at.present && !at.given {
			return err
		}
		for _, name := range roles {
			done, err := at.giveRole(name)
			if err == nil {
				changed, member = done, at.member.ID
				return nil
			}
			note, err := at.recordRefusal(name, err)
			if err != nil {
				return err
			}
			notes = append(notes, note)
		}
		changed = at.present
		return at.endIfGiven()
	})
	if err == nil && changed && member != 0 {
		s.MakeMemberDirectory(ctx, project, member)
	}
	f.Changed, f.Notes = f.Changed || changed, append(f.Notes, notes...)
	return err
}

func groupMembershipOf(e Editor, i models.Identity, project int64) (at groupMembership, err error) {
	at.Editor, at.identity = e, i
	if at.project, err = e.q.LockProject(store.AllProjects, project); err != nil {
		return at, err
	}
	at.member, err = e.q.Membership(project, i.UserID)
	if err != nil {
		return at, models.IgnoreNotFound(err)
	}
	at.present = at.member.RemovedAt == nil
	at.given, err = e.q.GrantedByIdentity(i.ID, at.member.ID)
	return at, err
}

// giveRole assigns a role if it fits, and reports whether the role has changed.
func (at *groupMembership) giveRole(name string) (bool, error) {
	r, err := at.q.RoleByName(at.project.ID, name)
	if err != nil {
		return false, models.NotFoundAs(err, roleNotFound())
	}
	if at.present && at.member.RoleID == r.ID {
		return false, nil
	}
	before, action := any(nil), "create"
	if at.present {
		before, action = at.member, "update"
		if err := at.checkRoleChange(at.project, at.member, r.ID); err != nil {
			return false, err
		}
		at.member.RoleID, at.member.Until = r.ID, nil
		err = at.putMember(&at.member)
	} else {
		if err := checkAllocated(at.q, at.project, r.Limit, 1); err != nil {
			return false, err
		}
		at.member, err = at.join(at.identity.UserID, r, MemberInput{RoleID: r.ID})
	}
	if err != nil {
		return false, err
	}
	if err := at.q.MarkGrantedByIdentity(at.identity.ID, at.member.ID); err != nil {
		return false, err
	}
	return true, at.actor.Audit(at.q, policies.Change{Action: action, Object: "member", ID: at.member.ID, Project: at.project.ID,
		Before: before, After: at.member})
}

// recordRefusal audits that a role was refused, and returns a note with the reason.
// It returns other errors.
func (at groupMembership) recordRefusal(role string, err error) (models.Text, error) {
	e, ok := err.(*models.Error)
	if !ok || e.Kind != models.KindNoCapacity && e.Kind != models.KindInvalid || len(e.Fields) == 0 {
		return models.Text{}, err
	}
	reason := e.Fields[0].Reason
	note := models.Say("Your group assigns you the role %s in the project %s, but this failed: %s", role, at.project.Name, reason)
	return note, at.actor.Audit(at.q, policies.Change{Action: "refuse", Object: "member", ID: at.member.ID, Project: at.project.ID,
		After: map[string]any{"user_id": at.identity.UserID, "role": role, "reason": reason.String()}})
}

// endIfGiven ends a membership that no group assigns any more.
func (at groupMembership) endIfGiven() error {
	if !at.given {
		return nil
	}
	if err := at.q.UnmarkGrantedByIdentity(at.member.ID); err != nil || !at.present {
		return err
	}
	return at.endMembership(at.member)
}
