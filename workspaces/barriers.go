package workspaces

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/policies"
	"weir/workspaces/barrier"
)

// MaxPTXBytes is the most bytes of PTX that a request may have, and MaxPTX the same in words.
const (
	MaxPTXBytes = 512 << 10
	MaxPTX      = "512 KiB"
)

// maxAllocation is how long the allocation of a module's barriers may take.
const maxAllocation = 30 * time.Second

// BarriersInput is a module whose barriers are to be allocated.
type BarriersInput struct {
	PTX      string `json:"ptx" doc:"module in PTX with logical barriers; at most 512 KiB"`
	Physical int    `json:"physical,omitempty" minimum:"0" maximum:"16" doc:"number of physical barriers of a thread block; 16 if absent"`
	Threads  int    `json:"threads,omitempty" minimum:"0" maximum:"1024" doc:"threads of a block of one dimension without .reqntid"`
}

// AllocateBarriers rewrites a module for the physical barriers of a thread block. Whoever is
// signed in can do that: it reads nothing and stores nothing. The error is about the field
// ptx, with line and reason, if the module cannot be handled.
func (s *Service) AllocateBarriers(ctx context.Context, actor policies.Actor, in BarriersInput) (models.BarrierAllocation, error) {
	if !actor.SignedIn() {
		return models.BarrierAllocation{}, s.access.Check(actor, policies.Platform, policies.WorkspaceRead)
	}
	if in.PTX == "" {
		return models.BarrierAllocation{}, models.Invalid("ptx", "is required")
	}
	if len(in.PTX) > MaxPTXBytes {
		return models.BarrierAllocation{}, models.Invalid("ptx", "must be at most %s", MaxPTX)
	}
	ctx, stop := context.WithTimeout(ctx, maxAllocation)
	defer stop()
	a, err := barrier.Allocate(ctx, in.PTX, barrier.Options{Physical: in.Physical, Threads: in.Threads})
	if errors.Is(err, context.DeadlineExceeded) {
		err = models.Invalid("ptx", "its barriers cannot be allocated within %d seconds; divide the kernel by barriers that all threads pass",
			int(maxAllocation.Seconds()))
	}
	return a, err
}
