package handlers

import (
	"context"
	"strings"

	"weir/models"
)

// noticeExtensions are what can be done about the ends that notices tell of,
// by the notices' ids: nothing where the end was moved far away since.
func (a *App) noticeExtensions(ctx context.Context, rows []models.Notice) (map[int64]models.Extension, error) {
	var projects []int64
	for _, n := range rows {
		if n.ProjectID != nil {
			projects = append(projects, *n.ProjectID)
		}
	}
	list, err := a.Requests.Extensions(ctx, actorOf(ctx), projects)
	found := map[int64]models.Extension{}
	for _, n := range rows {
		for _, e := range list {
			if n.ProjectID != nil && *n.ProjectID == e.ProjectID && strings.HasPrefix(n.Kind, e.Kind+".") {
				found[n.ID] = e
			}
		}
	}
	return found, err
}
