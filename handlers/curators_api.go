package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/storage"
)

func (a rest) curatorsOperations(s section) {
	register(a, s, route{http.MethodGet, "/curators", 200, "list-curators",
		models.Say("List the curators of the public directories; requires platform administrator")}, a.listCurators)
	register(a, s, route{http.MethodPost, "/curators", 201, "add-curator",
		models.Say("Let a user or a project write in a public directory; effective at once, and for mounts at the next workspace start")}, a.addCurator)
	register(a, s, route{http.MethodDelete, "/curators/{id}", 204, "remove-curator", models.Say("Remove a curator of a public directory")},
		a.removeCurator)
}

// Curator may write in a public directory.
type Curator struct {
	ID        int64     `json:"id"`
	Directory string    `json:"directory"`
	UserID    *int64    `json:"user_id,omitempty" doc:"ID of the user, who curates in every project"`
	ProjectID *int64    `json:"project_id,omitempty" doc:"ID of the project, whose members curate in it"`
	Name      string    `json:"name" doc:"name of the user or the project"`
	CreatedAt time.Time `json:"created_at"`
}

func curatorOf(c models.CuratorView) Curator {
	return Curator{c.ID, c.Directory, c.UserID, c.ProjectID, c.Name(), c.CreatedAt.UTC()}
}

func (a rest) listCurators(ctx context.Context, in *Paging) (*Response[List[Curator]], error) {
	return listed(*in, func(c models.CuratorView) int64 { return c.ID }, func(page store.Page) ([]models.CuratorView, error) {
		return a.Storage.Curators(ctx, actorOf(ctx), page)
	}, curatorOf)
}

func (a rest) addCurator(ctx context.Context, in *Create[storage.CuratorInput]) (*Created[Curator], error) {
	c, err := a.Storage.AddCurator(ctx, actorOf(ctx), in.Body)
	return created(0, curatorOf(c), err, "curators", c.ID)
}

func (a rest) removeCurator(ctx context.Context, in *ByID) (*Nothing, error) {
	return nil, a.Storage.RemoveCurator(ctx, actorOf(ctx), in.ID)
}
