package projects

import (
	"context"
	"fmt"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// HandoverInput is the recipient of a former member's directory.
type HandoverInput struct {
	ToMemberID int64 `json:"to_member_id" minimum:"1" doc:"current member of the same project"`
}

// FormerMembers lists the former members of a project with the recipients of their
// directories.
func (s *Service) FormerMembers(ctx context.Context, actor policies.Actor, project int64, page store.Page) ([]models.FormerMember, error) {
	if err := s.access.Check(actor, project, policies.ProjectRead); err != nil {
		return nil, err
	}
	q := s.store.Read(ctx)
	members, err := q.FormerMembers(actor.Scope(), project, page)
	if err == nil && len(members) == 0 {
		_, err = q.Project(actor.Scope(), project)
	}
	return members, err
}

// FormerMember finds a former member.
func (s *Service) FormerMember(ctx context.Context, actor policies.Actor, project, member int64) (v models.FormerMember, err error) {
	if err := s.access.Check(actor, project, policies.ProjectRead); err != nil {
		return v, err
	}
	return s.store.Read(ctx).FormerMember(actor.Scope(), project, member)
}

// Recipients lists the members who can be recipients of directories.
func (s *Service) Recipients(ctx context.Context, actor policies.Actor, project int64) ([]models.Recipient, error) {
	if err := s.access.Check(actor, project, policies.MemberWrite); err != nil {
		return nil, err
	}
	return s.store.Read(ctx).Recipients(project)
}

// CreateHandover hands the directory of a former member over to a current one, whose workspaces
// can write to it from then on. Others can still read it.
func (s *Service) CreateHandover(ctx context.Context, actor policies.Actor, project, member int64, in HandoverInput) (
	v models.FormerMember, err error) {
	err = s.edit(ctx, actor, project, policies.MemberWrite, func(e Editor, p models.Project) error {
		v, err := formerMember(e.q, actor, project, member)
		if err != nil {
			return err
		}
		if v.RecipientID != nil {
			return models.Conflict("This directory is already handed over to %s. End that handover first.", v.RecipientName)
		}
		return e.createHandover(p, v, in)
	})
	if err != nil {
		return v, err
	}
	return s.FormerMember(ctx, actor, project, member)
}

// formerMember is FormerMember with an explanation for current members.
func formerMember(q *store.Queries, actor policies.Actor, project, member int64) (models.FormerMember, error) {
	v, err := q.FormerMember(actor.Scope(), project, member)
	if models.KindOf(err) != models.KindNotFound {
		return v, err
	}
	if m, err := q.MemberView(actor.Scope(), project, member); err == nil {
		return v, models.Conflict("%s is still a member. Only the directories of former members can be handed over.", m.UserName)
	}
	return v, err
}

// createHandover hands a directory over to a current member.
func (e Editor) createHandover(p models.Project, from models.FormerMember, in HandoverInput) error {
	recipient, err := e.q.Member(e.actor.Scope(), p.ID, in.ToMemberID)
	if err == nil && !recipient.Active(e.q.Now()) {
		err = models.NotFound("member")
	}
	if err != nil {
		return models.NotFoundAs(err, models.Invalid("to_member_id", "is not a current member of this project"))
	}
	h := models.Handover{ProjectID: p.ID, MemberID: from.ID, ToMemberID: recipient.ID, At: e.q.Now()}
	if e.actor.User.ID != 0 {
		h.ByID = &e.actor.User.ID
	}
	if err := e.q.CreateHandover(&h); err != nil {
		return err
	}
	n := models.Notification{Kind: models.NotificationHandoverGiven, Link: fmt.Sprintf("/projects/%d", p.ID), Data: h,
		Text: models.Say("The directory of %s in %s was handed over to you: %s. Your workspaces can write to it.",
			from.UserName, p.Name, DirectoryOf(p.ID, from.ID))}
	if err := e.q.Notify([]int64{recipient.UserID}, n); err != nil {
		return err
	}
	return e.actor.Audit(e.q, policies.Change{Action: "hand-over", Object: "member", ID: from.ID, Project: p.ID, After: h})
}

// DirectoryOf is the path of a member's directory in workspaces.
func DirectoryOf(project, member int64) string {
	return fmt.Sprintf("/notebook/%d/%d", project, member)
}

// EndHandover ends a handover: workspaces of the recipient cannot write to the directory soon after.
func (s *Service) EndHandover(ctx context.Context, actor policies.Actor, project, member int64) error {
	return s.edit(ctx, actor, project, policies.MemberWrite, func(e Editor, _ models.Project) error {
		if _, err := e.q.FormerMember(actor.Scope(), project, member); err != nil {
			return err
		}
		h, err := e.q.Handover(project, member)
		if err != nil {
			return err
		}
		return e.endHandover(h)
	})
}

// putMember updates a membership, and ends the handovers that it invalidates.
func (e Editor) putMember(m *models.Member) error {
	before, err := e.q.Membership(m.ProjectID, m.UserID)
	if err != nil {
		return err
	}
	if err := e.q.UpdateMember(m); err != nil {
		return err
	}
	list, err := e.q.HandoversOf(m.ProjectID, m.ID)
	if err != nil {
		return err
	}
	was, is := before.Active(e.q.Now()), m.Active(e.q.Now())
	for _, h := range list {
		if handoverContinues(h, m.ID, was, is) {
			continue
		}
		if err := e.endHandover(h); err != nil {
			return err
		}
	}
	return nil
}

// handoverContinues reports whether a handover stays valid after a change of a member, who was
// active before or is active now. It ends when the former member returns, and when
// the recipient leaves or returns.
func handoverContinues(h models.Handover, member int64, was, is bool) bool {
	if h.MemberID == member {
		return !is
	}
	return was && is
}

func (e Editor) endHandover(h models.Handover) error {
	if err := e.q.DeleteHandover(h.ProjectID, h.MemberID); err != nil {
		return err
	}
	if err := notifyPreviousRecipient(e.q, h); err != nil {
		return err
	}
	return e.actor.Audit(e.q, policies.Change{Action: "take-back", Object: "member", ID: h.MemberID, Project: h.ProjectID, Before: h})
}

// notifyPreviousRecipient notifies an active member that a directory is no
// longer handed over to them.
func notifyPreviousRecipient(q *store.Queries, h models.Handover) error {
	recipient, err := q.Member(store.AllProjects, h.ProjectID, h.ToMemberID)
	if err != nil || !recipient.Active(q.Now()) {
		return models.IgnoreNotFound(err)
	}
	p, err := q.Project(store.AllProjects, h.ProjectID)
	if err != nil {
		return err
	}
	return q.Notify([]int64{recipient.UserID}, models.Notification{Kind: models.NotificationHandoverEnded,
		Link: fmt.Sprintf("/projects/%d", p.ID), Data: h, Text: models.Say("The directory %s in %s is no longer handed over to you. Your workspaces can only read it.",
			DirectoryOf(p.ID, h.MemberID), p.Name)})
}
