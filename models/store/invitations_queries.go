package store

import (
	"encoding/json"
	"time"

	"gorm.io/gorm"

	"weir/models"
)

// CreateInvitation inserts i and sets its id. Revoke an open one for the same address
// first.
func (q *Queries) CreateInvitation(i *models.Invitation) error {
	q.touchInvitation(*i)
	return q.db.Create(i).Error
}

func (q *Queries) touchInvitation(i models.Invitation) {
	q.Touch("invitations")
	if i.ProjectID != nil {
		q.Touch("project", *i.ProjectID)
	}
}

func (q *Queries) openInvitations() *gorm.DB {
	return q.db.Model(&models.Invitation{}).Where("accepted_at IS NULL AND revoked_at IS NULL")
}

// ofProject restricts db to a project; nil is the platform.
func ofProject(db *gorm.DB, project *int64) *gorm.DB {
	if project == nil {
		return db.Where("project_id IS NULL")
	}
	return db.Where("project_id = ?", *project)
}

// ReplaceInvitation revokes the open invitation of an address, and reports whether
// there was one.
func (q *Queries) ReplaceInvitation(email string, project *int64) (bool, error) {
	res := ofProject(q.openInvitations().Where("email = ?", email), project).Update("revoked_at", q.Now())
	return res.RowsAffected > 0, res.Error
}

// RevokeInvitation revokes an open invitation and reports whether it was one.
func (q *Queries) RevokeInvitation(i models.Invitation) (bool, error) {
	return q.endInvitation(i, "revoked_at")
}

// AcceptInvitation marks a pending invitation as accepted. Of concurrent callers, on
// all servers, one gets true.
func (q *Queries) AcceptInvitation(i models.Invitation) (bool, error) {
	return q.endInvitation(i, "accepted_at")
}

func (q *Queries) endInvitation(i models.Invitation, column string) (bool, error) {
	q.touchInvitation(i)
	now := q.Now()
	res := q.openInvitations().Where("id = ? AND expires_at > ?", i.ID, now).Updates(map[string]any{column: now, "problem": ""})
	return res.RowsAffected > 0, res.Error
}

// SetInvitationProblem records why accepting an open invitation was refused, and
// reports whether that is new.
func (q *Queries) SetInvitationProblem(i models.Invitation, problem models.Text) (bool, error) {
	q.touchInvitation(i)
	res := q.openInvitations().Where("id = ? AND problem <> ?", i.ID, problem).Update("problem", problem)
	return res.RowsAffected > 0, res.Error
}

func (q *Queries) invitationViews() *gorm.DB {
	return q.db.Table("invitations").Select(`invitations.*, users.name AS inviter_name, users.email AS inviter_email,
		COALESCE(projects.name, '') AS project, COALESCE(roles.name, '') AS role`).
		Joins("JOIN users ON users.id = invitations.inviter_id").
		Joins("LEFT JOIN projects ON projects.id = invitations.project_id").
		Joins("LEFT JOIN roles ON roles.id = invitations.role_id")
}

// Invitation finds an invitation.
func (q *Queries) Invitation(id int64) (v models.InvitationView, err error) {
	return v, found(q.invitationViews().Where("invitations.id = ?", id).Take(&v).Error, "invitation")
}

// InvitationByToken finds the invitation of a link, in whatever state, by the hash of
// its secret.
func (q *Queries) InvitationByToken(hash string) (v models.InvitationView, err error) {
	db := q.invitationViews().Joins("JOIN one_time_tokens t ON t.invitation_id = invitations.id AND t.purpose = 'invitation' AND t.hash = ?",
		hash)
	return v, found(db.Take(&v).Error, "link")
}

// Invitations lists invitations, newest first: all, or those of a project.
func (q *Queries) Invitations(project int64, page Page) (list []models.InvitationView, err error) {
	db := q.invitationViews()
	if project != 0 {
		db = db.Where("invitations.project_id = ?", project)
	}
	return list, page.newest(db, "invitations.id").Find(&list).Error
}

// InvitationCounts are what limits of invitations are compared with.
type InvitationCounts struct {
	OfProject int64 // pending
	OfInviter int64 // pending
	Recent    int64 // of the inviter, made since a time
}

// CountInvitations counts for a new invitation to a project, or to the platform.
func (q *Queries) CountInvitations(project *int64, inviter int64, since time.Time) (c InvitationCounts, err error) {
	pending := func() *gorm.DB { return q.openInvitations().Where("expires_at > ?", q.Now()) }
	if err := ofProject(pending(), project).Count(&c.OfProject).Error; err != nil {
		return c, err
	}
	if err := pending().Where("inviter_id = ?", inviter).Count(&c.OfInviter).Error; err != nil {
		return c, err
	}
	return c, q.db.Model(&models.Invitation{}).Where("inviter_id = ? AND created_at > ?", inviter, since).Count(&c.Recent).Error
}

// FirstInvitationSince is when an inviter made the first invitation since a time.
func (q *Queries) FirstInvitationSince(inviter int64, since time.Time) (at time.Time, err error) {
	var i models.Invitation
	err = q.db.Where("inviter_id = ? AND created_at > ?", inviter, since).Order("created_at").Take(&i).Error
	return i.CreatedAt, err
}

// CountInvitationsOf counts the invitations of an address since a time: those by an
// inviter, and all.
func (q *Queries) CountInvitationsOf(email string, inviter int64, since time.Time) (byInviter, all int64, err error) {
	of := q.db.Model(&models.Invitation{}).Where("email = ? AND created_at > ?", email, since).Session(&gorm.Session{})
	if err := of.Count(&all).Error; err != nil {
		return 0, 0, err
	}
	err = of.Where("inviter_id = ?", inviter).Count(&byInviter).Error
	return byInviter, all, err
}

// SendsMail reports whether a mail server is configured.
func (q *Queries) SendsMail() bool { return q.mail }

// QueueLetter queues a letter if a mail server is configured.
func (q *Queries) QueueLetter(kind string, l models.Letter) error {
	if !q.mail {
		return nil
	}
	body, err := json.Marshal(l)
	if err != nil {
		return err
	}
	d := models.NewMessage(models.Notification{Kind: kind}, "address:"+l.Address, q.Now())
	d.Body = string(body)
	return q.Queue([]models.Delivery{d})
}
