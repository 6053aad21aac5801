package handlers

import (
	"context"
	"net/http"

	"weir/models"
	"weir/web"
	"weir/workspaces"
)

func (a rest) availableOperations(s section) {
	register(a, s, route{http.MethodGet, "/projects/{id}/available", 200, "list-available",
		models.Say("List common GPU share sizes and their availability in a project; requires membership")}, a.listAvailable)
}

// SizeAvailability is whether a demand of a common size can be satisfied now.
type SizeAvailability struct {
	Demand  models.Demand `json:"demand" doc:"GPU demand"`
	Outcome string        `json:"outcome" enum:"granted,partial,delayed,refused" doc:"outcome of a request made now"`
	Reasons []string      `json:"reasons,omitempty" doc:"reasons, if not granted in full"`
	// Simulated GPUs are never passed off as real ones.
	Simulated bool `json:"simulated" doc:"available GPUs are simulated"`
}

func (a rest) listAvailable(ctx context.Context, in *ByID) (*Response[List[SizeAvailability]], error) {
	all, err := a.Workspaces.Available(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	items := models.Map(all, func(f workspaces.SizeAvailability) SizeAvailability {
		return SizeAvailability{Demand: f.Demand, Outcome: f.Outcome, Reasons: models.Map(f.Reasons, models.Text.String), Simulated: f.Simulated}
	})
	return &Response[List[SizeAvailability]]{List[SizeAvailability]{Items: items}}, nil
}

// availableRows lists which common share sizes are available.
func availableRows(list []workspaces.SizeAvailability) []web.AvailableRow {
	return models.Map(list, func(f workspaces.SizeAvailability) web.AvailableRow { return web.AvailableRow(f) })
}
