package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/projects"
)

func (a rest) formerMembersOperations(s section) {
	register(a, s, route{http.MethodGet, "/projects/{id}/former-members", 200, "list-former-members",
		models.Say("List former members of a project and the recipients of their directories")}, a.listFormerMembers)
	register(a, s, route{http.MethodGet, "/projects/{id}/members/{member}/handover", 200, "get-handover",
		models.Say("Get the handover of a former member's directory")}, a.getHandover)
	register(a, s, route{http.MethodPost, "/projects/{id}/members/{member}/handover", 200, "create-handover",
		models.Say("Hand over the directory of a former member to a current member; effective at the next workspace start")}, a.createHandover)
	register(a, s, route{http.MethodDelete, "/projects/{id}/members/{member}/handover", 204, "end-handover", models.Say("End a handover")},
		a.endHandover)
}

// FormerMember is a member who was removed or whose membership has ended.
type FormerMember struct {
	ID        int64      `json:"id" doc:"member ID"`
	ProjectID int64      `json:"project_id"`
	UserID    int64      `json:"user_id"`
	Name      string     `json:"name"`
	Email     string     `json:"email"`
	LeftAt    time.Time  `json:"left_at"`
	Path      string     `json:"path" doc:"path of the directory in workspaces"`
	Recipient *Recipient `json:"recipient,omitempty" doc:"member with write access to the directory; absent if none"`
}

// Recipient is the member with write access to a former member's directory.
type Recipient struct {
	MemberID int64     `json:"member_id"`
	Name     string    `json:"name"`
	Since    time.Time `json:"since"`
}

func formerMemberOf(l models.FormerMember) FormerMember {
	v := FormerMember{ID: l.ID, ProjectID: l.ProjectID, UserID: l.UserID, Name: l.UserName, Email: l.UserEmail, LeftAt: l.LeftAt().UTC(),
		Path: projects.DirectoryOf(l.ProjectID, l.ID)}
	if l.RecipientID != nil && l.HandoverAt != nil {
		v.Recipient = &Recipient{*l.RecipientID, l.RecipientName, l.HandoverAt.UTC()}
	}
	return v
}

func (a rest) listFormerMembers(ctx context.Context, in *PageOf) (*Response[List[FormerMember]], error) {
	return listed(in.Paging, func(l models.FormerMember) int64 { return l.ID }, func(page store.Page) ([]models.FormerMember, error) {
		return a.Projects.FormerMembers(ctx, actorOf(ctx), in.ID, page)
	}, formerMemberOf)
}

func (a rest) getHandover(ctx context.Context, in *ByMember) (*Response[FormerMember], error) {
	l, err := a.Projects.FormerMember(ctx, actorOf(ctx), in.ID, in.Member)
	if err != nil {
		return nil, err
	}
	return &Response[FormerMember]{formerMemberOf(l)}, nil
}

func (a rest) createHandover(ctx context.Context, in *CreateInMember[projects.HandoverInput]) (*Response[FormerMember], error) {
	l, err := a.Projects.CreateHandover(ctx, actorOf(ctx), in.ID, in.Member, in.Body)
	if err != nil {
		return nil, err
	}
	return &Response[FormerMember]{formerMemberOf(l)}, nil
}

func (a rest) endHandover(ctx context.Context, in *ByMember) (*Nothing, error) {
	return nil, a.Projects.EndHandover(ctx, actorOf(ctx), in.ID, in.Member)
}
