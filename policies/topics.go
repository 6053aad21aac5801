package policies

import (
	"context"
	"strconv"
	"strings"

	"weir/models"
)

// CheckTopics returns an error unless the actor may follow the changes of every
// topic now. It reads the actor's permissions again.
func (a *Accounts) CheckTopics(ctx context.Context, actor Actor, topics []string) error {
	q := a.store.Read(ctx)
	actor, err := reload(q, actor)
	if err != nil {
		return err
	}
	for _, topic := range topics {
		if !a.canFollow(q, actor, topic) {
			return models.NotFound("topic")
		}
	}
	return nil
}

func (a *Accounts) canFollow(q *models.Queries, actor Actor, topic string) bool {
	kind, rest, _ := strings.Cut(topic, ":")
	id, err := strconv.ParseInt(rest, 10, 64)
	switch kind {
	case "pool", "environments", "projects", "requests":
		return rest == ""
	case "departments":
		return rest == "" && a.access.May(actor, Platform, UserRead)
	case "deliveries":
		return rest == "" && a.access.May(actor, Platform, WebhookRead)
	case "telemetry": // of a provider
		return err == nil && a.access.May(actor, Platform, PoolRead)
	case "user":
		return err == nil && id == actor.User.ID
	case "project":
		return err == nil && a.access.May(actor, id, ProjectRead)
	case "workspace":
		if err != nil {
			return false
		}
		w, err := q.Workspace(actor.Scope(), id)
		return err == nil && a.access.MayOwned(actor, w.UserID, w.ProjectID, WorkspaceRead)
	default:
		return false
	}
}
