package projects

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// DefaultInvitationLifetime is how long an invitation can be accepted.
const DefaultInvitationLifetime = 7 * 24 * time.Hour

// Limits of invitations. Those of an inviter may be exceeded by what is invited to
// different projects at the same moment.
const (
	maxInvited           = 100 // addresses at once
	maxPendingOfProject  = 200
	maxPendingOfInviter  = 500
	maxInvitationsPerDay = 500 // of an inviter
	maxInvitationsOf     = 10  // of an address in a day, by an inviter
	maxInvitationsOfAll  = 50  // by all inviters
)

// InvitationInput invites email addresses. RoleID is for a project, the rest for the
// platform.
type InvitationInput struct {
	Emails []string `json:"emails" minItems:"1" maxItems:"100" doc:"email addresses"`
	RoleID int64    `json:"role_id,omitempty" minimum:"1" doc:"role in the project; only for invitations to a project"`

	Admin        bool   `json:"admin,omitempty" doc:"the accounts become platform administrators; not for invitations to a project"`
	Auditor      bool   `json:"auditor,omitempty" doc:"the accounts become auditors; not for invitations to a project"`
	DepartmentID *int64 `json:"department_id,omitempty" minimum:"1" doc:"department ID; absent for none; not for invitations to a project"`
}

// Check validates and normalizes the input.
func (in *InvitationInput) Check() error {
	var p models.Problems
	switch n := len(in.Emails); {
	case n == 0:
		p.Add("emails", "must not be empty")
	case n > maxInvited:
		p.Add("emails", "must be at most %d addresses; has %d", maxInvited, n)
	default:
		in.Emails = slices.Clone(in.Emails)
		lines := map[string]int{}
		for i, email := range in.Emails {
			in.Emails[i] = models.CheckEmail(EmailField(i), email, &p)
			if first, again := lines[in.Emails[i]]; again && in.Emails[i] != "" {
				p.Add(EmailField(i), "is already in line %d", first)
			}
			lines[in.Emails[i]] = i + 1
		}
	}
	return p.Err()
}

// EmailField is the name of an address in the errors of InvitationInput.
func EmailField(i int) string { return fmt.Sprintf("emails[%d]", i) }

// Invited is a new invitation with its link, which is not stored.
type Invited struct {
	models.Invitation
	Link policies.Link // none if it is only sent by email
}

// Invite invites email addresses to a project with a role: all of them or none. The
// emails are queued in the transaction, if a mail server is configured. The actor must
// be a user, with the right to add members. An earlier open invitation of an address
// to the project ends.
func (e Editor) Invite(p models.Project, in InvitationInput) ([]Invited, error) {
	if err := in.Check(); err != nil {
		return nil, err
	}
	if in.Admin || in.Auditor || in.DepartmentID != nil {
		return nil, models.Invalid("admin", "is not possible in an invitation to a project")
	}
	r, err := e.q.Role(e.actor.Scope(), p.ID, in.RoleID)
	if err != nil {
		return nil, models.NotFoundAs(err, roleNotFound())
	}
	if err := e.grantsTo(in.Emails[0], r); err != nil {
		return nil, err
	}
	if err := e.checkInvited(in.Emails, func(u models.User) (models.Text, error) {
		m, err := e.q.Membership(p.ID, u.ID)
		if err == nil && m.RemovedAt == nil {
			return models.Say("is already a member"), nil
		}
		return models.Text{}, models.IgnoreNotFound(err)
	}); err != nil {
		return nil, err
	}
	if err := checkAllocated(e.q, p, r.Limit, int64(len(in.Emails))); err != nil {
		return nil, err
	}
	return e.invite(models.Invitation{ProjectID: &p.ID, RoleID: &r.ID}, in.Emails)
}

// inviteToPlatform invites email addresses without accounts.
func (e Editor) inviteToPlatform(in InvitationInput) ([]Invited, error) {
	if err := in.Check(); err != nil {
		return nil, err
	}
	if in.RoleID != 0 {
		return nil, models.Invalid("role_id", "is not possible in an invitation to the platform")
	}
	if err := policies.CheckDepartment(e.q, in.DepartmentID); err != nil {
		return nil, err
	}
	if err := e.checkInvited(in.Emails, func(models.User) (models.Text, error) {
		return models.Say("already has an account"),
			nil
	}); err != nil {
		return nil, err
	}
	return e.invite(models.Invitation{Admin: in.Admin, Auditor: in.Auditor, DepartmentID: in.DepartmentID}, in.Emails)
}

// checkInvited refuses addresses of disabled accounts, those whose account is refused,
// and those that were invited very often.
func (e Editor) checkInvited(emails []string, refuse func(models.User) (models.Text, error)) error {
	var p models.Problems
	for i, email := range emails {
		reason, err := e.refuseInvited(email, refuse)
		if err != nil {
			return err
		}
		if !reason.Empty() {
			p = append(p, models.Field{Name: EmailField(i), Reason: reason})
		}
	}
	return p.Err()
}

func (e Editor) refuseInvited(email string, refuse func(models.User) (models.Text, error)) (models.Text, error) {
	byInviter, all, err := e.q.CountInvitationsOf(email, e.actor.User.ID, e.q.Now().Add(-24*time.Hour))
	switch {
	case err != nil:
		return models.Text{}, err
	case byInviter >= maxInvitationsOf:
		return models.Say("was invited by you %d times in a day, of at most %d; try again tomorrow", byInviter, int64(maxInvitationsOf)), nil
	case all >= maxInvitationsOfAll:
		return models.Say("was invited %d times in a day, of at most %d; try again tomorrow", all, int64(maxInvitationsOfAll)), nil
	}
	u, err := e.q.UserByEmail(email)
	switch {
	case err != nil:
		return models.Text{}, models.IgnoreNotFound(err)
	case u.Disabled:
		return models.Say("belongs to a disabled account"), nil
	}
	return refuse(u)
}

// invite creates an invitation like template for each address.
func (e Editor) invite(template models.Invitation, emails []string) ([]Invited, error) {
	if err := e.actor.CheckUser(); err != nil {
		return nil, err
	}
	list := make([]Invited, len(emails))
	for i, email := range emails {
		replaced, err := e.q.ReplaceInvitation(email, template.ProjectID)
		if err != nil {
			return nil, err
		}
		list[i].Invitation = template
		in := &list[i].Invitation
		in.Email, in.InviterID, in.CreatedAt = email, e.actor.User.ID, e.q.Now()
		in.ExpiresAt = in.CreatedAt.Add(cmp.Or(e.invitationLifetime, DefaultInvitationLifetime))
		if err := e.createInvitation(&list[i], replaced); err != nil {
			return nil, err
		}
	}
	return list, e.checkInvitationLimits(template.ProjectID)
}

func (e Editor) createInvitation(i *Invited, replaced bool) (err error) {
	// A link that is sent proves that its user has the address. Only who may create any
	// account gets to see it too; one that cannot be sent is shown, and proves nothing.
	mayCreate := e.access.May(e.actor, policies.Platform, policies.UserWrite)
	i.LinkShown = !e.q.SendsMail() && !mayCreate
	if err := e.q.CreateInvitation(&i.Invitation); err != nil {
		return err
	}
	if i.LinkShown || mayCreate {
		if i.Link, err = policies.NewInvitationLink(e.q, i.Invitation); err != nil {
			return err
		}
	}
	after := auditInvitation(i.Invitation)
	after["replaces_earlier"] = replaced
	if err := e.actor.Audit(e.q, policies.Change{Action: "create", Object: "invitation", ID: i.ID, Project: projectOf(i.Invitation),
		After: after}); err != nil {
		return err
	}
	return e.q.QueueLetter(models.LetterInvitation, models.Letter{Address: i.Email, Invitation: i.ID})
}

// checkInvitationLimits is called after the invitations were created.
func (e Editor) checkInvitationLimits(project *int64) error {
	c, err := e.q.CountInvitations(project, e.actor.User.ID, e.q.Now().Add(-24*time.Hour))
	switch {
	case err != nil:
		return err
	case project != nil && c.OfProject > maxPendingOfProject:
		return models.Invalid("emails", "would be more than %d pending invitations to this project; revoke some first", maxPendingOfProject)
	case c.OfInviter > maxPendingOfInviter:
		return models.Invalid("emails", "would be more than %d pending invitations by you; revoke some first", maxPendingOfInviter)
	case c.Recent > maxInvitationsPerDay:
		first, err := e.q.FirstInvitationSince(e.actor.User.ID, e.q.Now().Add(-24*time.Hour))
		refusal := models.RateLimited(first.Add(24*time.Hour).Sub(e.q.Now()), "You have sent too many invitations in a day. Try again later.")
		refusal.Fields = models.Invalid("emails", "would be more than %d invitations by you in a day", maxInvitationsPerDay).Fields
		return cmp.Or[error](err, refusal)
	}
	return nil
}

// projectOf is the project of an invitation; Platform without one.
func projectOf(i models.Invitation) int64 {
	if i.ProjectID == nil {
		return policies.Platform
	}
	return *i.ProjectID
}

// rightToInvite is the right that an invitation needs, when it is made and when it is
// accepted.
func rightToInvite(project int64) policies.Right {
	if project == policies.Platform {
		return policies.UserWrite
	}
	return policies.MemberWrite
}

// auditInvitation is an invitation in the audit, without its link.
func auditInvitation(i models.Invitation) map[string]any {
	return map[string]any{"email": i.Email, "role_id": i.RoleID, "admin": i.Admin, "auditor": i.Auditor, "department_id": i.DepartmentID,
		"inviter_id": i.InviterID, "expires_at": i.ExpiresAt}
}

// Invitations invites people, and lets them in.
type Invitations struct {
	projects *Service
	accounts *policies.Accounts
}

// NewInvitations returns the service.
func NewInvitations(projects *Service, accounts *policies.Accounts) *Invitations {
	return &Invitations{projects: projects, accounts: accounts}
}

// Invite invites email addresses to a project, or with policies.Platform to the
// platform. The links are returned only here.
func (s *Invitations) Invite(ctx context.Context, actor policies.Actor, project int64, in InvitationInput) (list []Invited, err error) {
	if project != policies.Platform {
		err = s.projects.edit(ctx, actor, project, policies.MemberWrite, func(e Editor, p models.Project) error {
			list, err = e.Invite(p, in)
			return err
		})
		return list, err
	}
	err = s.projects.access.Write(ctx, s.projects.store, actor, policies.Platform, policies.UserWrite, func(q *store.Queries) error {
		list, err = s.projects.Within(q, actor).inviteToPlatform(in)
		return err
	})
	return list, err
}

// List lists the invitations to a project, or with policies.Platform all invitations,
// newest first.
func (s *Invitations) List(ctx context.Context, actor policies.Actor, project int64, page store.Page) ([]models.InvitationView, error) {
	if !s.readsAll(actor) {
		if err := s.projects.access.Check(actor, project, rightToInvite(project)); err != nil {
			return nil, err
		}
	}
	q := s.projects.store.Read(ctx)
	if project != policies.Platform {
		if _, err := q.Project(actor.Scope(), project); err != nil {
			return nil, err
		}
	}
	return q.Invitations(project, page)
}

// readsAll reports whether the actor may see all invitations.
func (s *Invitations) readsAll(actor policies.Actor) bool {
	return s.projects.access.May(actor, policies.Platform, policies.UserRead)
}

// Invitation finds an invitation.
func (s *Invitations) Invitation(ctx context.Context, actor policies.Actor, id int64) (models.InvitationView, error) {
	i, err := s.InvitationForm(ctx, actor, id)
	if err != nil && s.readsAll(actor) {
		return s.projects.store.Read(ctx).Invitation(id)
	}
	return i, err
}

// InvitationForm finds an invitation for an actor who may revoke it.
func (s *Invitations) InvitationForm(ctx context.Context, actor policies.Actor, id int64) (i models.InvitationView, err error) {
	if i, err = s.projects.store.Read(ctx).Invitation(id); err != nil {
		return i, err
	}
	project := projectOf(i.Invitation)
	err = s.projects.access.Check(actor, project, rightToInvite(project))
	if err != nil && actor.SignedIn() && !s.readsAll(actor) {
		err = models.NotFound("invitation")
	}
	return i, err
}

// Revoke ends a pending invitation: its links no longer work.
func (s *Invitations) Revoke(ctx context.Context, actor policies.Actor, id int64) (i models.InvitationView, err error) {
	if i, err = s.InvitationForm(ctx, actor, id); err != nil {
		return i, err
	}
	project := projectOf(i.Invitation)
	err = s.projects.access.Write(ctx, s.projects.store, actor, project, rightToInvite(project), func(q *store.Queries) error {
		if i, err = q.Invitation(id); err != nil {
			return err
		}
		if err := policies.CheckPending(i, q.Now()); err != nil {
			return err
		}
		if ok, err := q.RevokeInvitation(i.Invitation); err != nil || !ok {
			return cmp.Or[error](err, models.Conflict("This invitation has already been accepted."))
		}
		return actor.Audit(q, policies.Change{Action: "revoke", Object: "invitation", ID: id, Project: project,
			Before: auditInvitation(i.Invitation)})
	})
	return i, err
}
