package handlers

import (
	"context"
	"net/http"

	"weir/models"
	"weir/workspaces"
)

func (a rest) barriersOperations(s section) {
	register(a, s, route{http.MethodPost, "/barriers", 200, "allocate-barriers",
		models.Say("Allocate the physical barriers of kernels in PTX")}, a.allocateBarriers)
}

func (a rest) allocateBarriers(ctx context.Context, in *Create[workspaces.BarriersInput]) (*Response[models.BarrierAllocation], error) {
	v, err := a.Workspaces.AllocateBarriers(ctx, actorOf(ctx), in.Body)
	return &Response[models.BarrierAllocation]{v}, err
}
