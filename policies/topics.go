package policies

import (
	"context"
	"strconv"
	"strings"

	"weir/models"
)

// CheckTopics returns an error unless the actor may follow the changes of every
// topic now, by the actor's present permissions.
func (a *Accounts) CheckTopics(ctx context.Context, actor Actor, topics []string) error {
	actor, err := a.RefreshActor(ctx, actor)
	if err != nil {
		return err
	}
	for _, topic := range topics {
		if !a.canFollow(ctx, actor, topic) {
			return models.NotFound("topic")
		}
	}
	return nil
}

func (a *Accounts) canFollow(ctx context.Context, actor Actor, topic string) bool {
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
	case "workspace", "reservation", "run", "run-output", "deployment":
		if err != nil {
			return false
		}
		o, err := a.ownerOf(ctx, topic, id)
		return err == nil && a.access.MayOwned(actor, o.user, o.project, WorkspaceRead)
	default:
		return false
	}
}
