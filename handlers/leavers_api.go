package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/pool/projects"
)

func (a rest) leaversOperations(s section) {
	register(a, s, route{http.MethodGet, "/projects/{id}/leavers", 200, "list-leavers", "List who has left a project, and who has their directories"}, a.listLeavers)
	register(a, s, route{http.MethodGet, "/projects/{id}/members/{member}/handover", 200, "get-handover", "Show who has the directory of a member who has left"}, a.getHandover)
	register(a, s, route{http.MethodPost, "/projects/{id}/members/{member}/handover", 200, "hand-over", "Hand the directory of a member who has left to a present one, who can write it from the next start of a workspace on"}, a.handOver)
	register(a, s, route{http.MethodDelete, "/projects/{id}/members/{member}/handover", 204, "take-back", "End a handover"}, a.takeBack)
}

// Leaver is a member whose participation is over.
type Leaver struct {
	ID        int64     `json:"id" doc:"of the member"`
	ProjectID int64     `json:"project_id"`
	UserID    int64     `json:"user_id"`
	Name      string    `json:"name"`
	Email     string    `json:"email"`
	LeftAt    time.Time `json:"left_at"`
	Path      string    `json:"path" doc:"the directory, as workspaces see it"`
	Heir      *Heir     `json:"heir,omitempty" doc:"who can write the directory; absent: nobody"`
}

// Heir is who has the directory of a member who has left.
type Heir struct {
	MemberID int64     `json:"member_id"`
	Name     string    `json:"name"`
	Since    time.Time `json:"since"`
}

func leaverOf(l models.Leaver) Leaver {
	v := Leaver{ID: l.ID, ProjectID: l.ProjectID, UserID: l.UserID, Name: l.UserName, Email: l.UserEmail, LeftAt: l.LeftAt().UTC(), Path: projects.DirectoryOf(l.ProjectID, l.ID)}
	if l.HeirID != nil && l.GivenAt != nil {
		v.Heir = &Heir{*l.HeirID, l.HeirName, l.GivenAt.UTC()}
	}
	return v
}

func (a rest) listLeavers(ctx context.Context, in *PageOf) (*Answer[List[Leaver]], error) {
	return listed(in.Paging, func(l models.Leaver) int64 { return l.ID }, func(page models.Page) ([]models.Leaver, error) {
		return a.Ledger.Leavers(ctx, actorOf(ctx), in.ID, page)
	}, leaverOf)
}

func (a rest) getHandover(ctx context.Context, in *ByMember) (*Answer[Leaver], error) {
	l, err := a.Ledger.Leaver(ctx, actorOf(ctx), in.ID, in.Member)
	if err != nil {
		return nil, err
	}
	return &Answer[Leaver]{leaverOf(l)}, nil
}

// HandoverCreation hands a directory over.
type HandoverCreation struct {
	ByMember
	Body projects.HandoverInput
}

func (a rest) handOver(ctx context.Context, in *HandoverCreation) (*Answer[Leaver], error) {
	l, err := a.Ledger.HandOver(ctx, actorOf(ctx), in.ID, in.Member, in.Body)
	if err != nil {
		return nil, err
	}
	return &Answer[Leaver]{leaverOf(l)}, nil
}

func (a rest) takeBack(ctx context.Context, in *ByMember) (*Nothing, error) {
	return nothing(a.Ledger.TakeBack(ctx, actorOf(ctx), in.ID, in.Member))
}
