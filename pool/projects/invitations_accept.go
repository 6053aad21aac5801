package projects

import (
	"context"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// viaInvitation is how the invited was authenticated, in the audit.
const viaInvitation = "invitation"

// Offer is what the link of an invitation leads to.
type Offer struct {
	models.InvitationView
	HasAccount   bool // the address has one: its owner signs in first
	Mine         bool // the actor has signed in with the address
	ProviderOnly bool // the account must be created by signing in with the identity provider
	Launches     bool // with the role, workspaces can be launched
	Closed       *models.Error
}

// Offer finds the invitation of a link, for the actor who opened it.
func (s *Invitations) Offer(ctx context.Context, actor policies.Actor, secret string) (o Offer, err error) {
	q := s.projects.store.Read(ctx)
	if o.InvitationView, err = policies.InvitationOf(q, secret); err != nil {
		return o, err
	}
	if o.Closed, err = policies.AsRefusal(policies.CheckPending(o.InvitationView, q.Now())); err != nil {
		return o, err
	}
	if o.ProjectID != nil && o.RoleID != nil {
		role, err := q.Role(store.AllProjects, *o.ProjectID, *o.RoleID)
		if err != nil {
			return o, err
		}
		o.Launches = role.Permits().Contains(models.WorkspaceLaunch)
	}
	_, err = q.UserByEmail(o.Email)
	o.HasAccount, o.Mine, o.ProviderOnly = err == nil, actor.User.Email == o.Email, s.accounts.Provider.Creates(o.Email)
	return o, models.IgnoreNotFound(err)
}

// Accept accepts the invitation of a link, and returns the account. The invited choose
// the name and the password of their new account; people who have one have signed in
// with the invited address, and in is ignored. The account, the membership and the end
// of the invitation are one transaction, in which the inviter must still have the
// right and all permissions to add the member. If not, or if the limit does not fit,
// the invitation stays open and its inviter is informed.
func (s *Invitations) Accept(ctx context.Context, actor policies.Actor, secret string, in policies.NewUser) (models.User, error) {
	o, err := s.Offer(ctx, actor, secret)
	if err != nil {
		return models.User{}, err
	}
	if o.Closed != nil {
		return models.User{}, o.Closed
	}
	a := acceptance{Invitations: s, invitation: o.InvitationView, invited: actor}
	if err := a.prepare(ctx, o, in); err != nil {
		return models.User{}, err
	}
	err = s.projects.store.InRevokingTx(ctx, a.commit)
	if a.refusal != nil {
		return models.User{}, s.recordRefusal(ctx, a.invitation, a.refusal)
	}
	if err == nil && a.member.ID != 0 {
		s.projects.MakeMemberDirectory(ctx, a.member.ProjectID, a.member.ID)
	}
	return a.user, err
}

// acceptance is one attempt to accept an invitation.
type acceptance struct {
	*Invitations
	invitation models.InvitationView
	invited    policies.Actor
	isNew      bool
	user       models.User
	member     models.Member
	refusal    *models.Error // of what the inviter offers
}

// prepare sets the account: the actor's, or a new one.
func (a *acceptance) prepare(ctx context.Context, o Offer, in policies.NewUser) (err error) {
	i := o.InvitationView
	switch {
	case o.Mine:
		a.user = a.invited.User
		return nil
	case a.invited.SignedIn():
		return models.Forbidden("This invitation is for %s. Sign out, and open the link again.", i.Email)
	case o.HasAccount:
		return &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("%s has an account. Sign in to accept the invitation.",
			i.Email)}
	case o.ProviderOnly:
		return models.Forbidden("Accounts for %s sign in with %s.", i.Email, a.accounts.Provider.Name)
	}
	a.isNew = true
	in.Email, in.Admin, in.Auditor, in.DepartmentID = i.Email, i.Admin, i.Auditor, i.DepartmentID
	a.user, err = a.accounts.NewAccount(ctx, in)
	a.user.EmailUnconfirmed = i.LinkShown
	a.invited = policies.Actor{User: models.User{Email: i.Email}, Via: viaInvitation}
	return err
}

// commit accepts the invitation within a transaction.
func (a *acceptance) commit(q *store.Queries) error {
	a.refusal, a.member = nil, models.Member{}
	project := projectOf(a.invitation.Invitation)
	inviter, err := a.projects.access.Granter(q, a.invitation.InviterID, project, rightToInvite(project))
	if err != nil {
		return a.refuse(err)
	}
	if ok, err := q.AcceptInvitation(a.invitation.Invitation); err != nil {
		return err
	} else if !ok {
		return a.closed(q)
	}
	if err := a.admit(q); err != nil {
		return err
	}
	if err := a.join(q, inviter); err != nil {
		return err
	}
	return a.invited.Audit(q, policies.Change{Action: "accept", Object: "invitation", ID: a.invitation.ID, Project: project,
		After: auditInvitation(a.invitation.Invitation)})
}

// closed says why the invitation could not be accepted any more.
func (a *acceptance) closed(q *store.Queries) error {
	now, err := q.Invitation(a.invitation.ID)
	if err != nil {
		return err
	}
	return policies.CheckPending(now, q.Now())
}

// admit adds the account, or reads it again and gives it what the invitation to the
// platform offers.
func (a *acceptance) admit(q *store.Queries) error {
	if a.isNew {
		a.user.ID, a.invited.User.ID = 0, 0 // of an attempt that was rolled back
		err := a.accounts.AddAccount(q, a.invited, &a.user)
		a.invited.User = a.user
		return err
	}
	if err := a.projects.access.CheckSelf(q, a.invited); err != nil {
		return err
	}
	return a.accounts.Promote(q, a.invited, &a.user, a.invitation.Invitation)
}

// join adds the member on behalf of the inviter.
func (a *acceptance) join(q *store.Queries, inviter policies.Actor) error {
	if a.invitation.ProjectID == nil {
		return nil
	}
	if a.invitation.RoleID == nil {
		return a.refuse(models.Conflict("The role of this invitation was deleted."))
	}
	p, err := q.Project(store.AllProjects, *a.invitation.ProjectID)
	if err != nil {
		return err
	}
	r, err := q.Role(store.AllProjects, p.ID, *a.invitation.RoleID)
	if err != nil {
		return err
	}
	if err := a.projects.Within(q, inviter).checkNewMember(p, a.user.ID, r); err != nil {
		if models.KindOf(err) == models.KindForbidden { // it names the permissions that the inviter lacks
			err = policies.CannotGive(inviter.User)
		}
		return a.refuse(err)
	}
	a.member, err = a.projects.Within(q, a.invited).addMember(a.user.ID, r, MemberInput{RoleID: r.ID})
	if err != nil {
		return a.refuse(err)
	}
	return nil
}

// refuse notes why what the inviter offers cannot be had.
func (a *acceptance) refuse(err error) error {
	a.refusal, _ = policies.AsRefusal(err)
	return err
}

// recordRefusal records why an invitation could not be accepted, informs its inviter
// the first time, and returns the error for the invited.
func (s *Invitations) recordRefusal(ctx context.Context, i models.InvitationView, e *models.Error) error {
	reason := e.Message
	if len(e.Fields) > 0 {
		reason = e.Fields[0].Reason
	}
	err := s.projects.store.InTx(ctx, func(q *store.Queries) error {
		isNew, err := q.SetInvitationProblem(i.Invitation, reason)
		if err != nil || !isNew {
			return err
		}
		return q.Notify([]int64{i.InviterID}, models.Notification{Kind: models.NotificationInvitationRefused, Link: i.ListPath(),
			Text: models.Say("%s could not accept your invitation: %s", i.Email, reason)})
	})
	if err != nil {
		return err
	}
	return &models.Error{Kind: e.Kind, Message: models.Say("This invitation cannot be accepted now, and %s has been informed. The reason: %s",
		i.InviterName, reason)}
}
