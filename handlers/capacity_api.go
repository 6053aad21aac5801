package handlers

import (
	"context"
	"net/http"

	"weir/models"
	"weir/models/store"
	"weir/pool/projects"
)

func (a rest) capacityOperations(s section) {
	register(a, s, route{http.MethodGet, "/capacity", 200, "get-capacity",
		models.Say("Get pool capacity and allocated quotas; requires platform administrator")}, a.getCapacity)
	register(a, s, route{http.MethodPut, "/capacity", 200, "set-capacity",
		models.Say("Set the overcommit ratios; requires platform administrator")}, a.setCapacity)
}

// ResourceCapacity is the capacity of one resource and the sum of the quotas.
type ResourceCapacity struct {
	Resource         string       `json:"resource" enum:"gpu_cores,gpu_memory_mib,cpu_milli,memory_mib,storage_mib"`
	Known            bool         `json:"known" doc:"the capacity is known"`
	Capacity         int64        `json:"capacity" doc:"capacity of the providers; for CPU, memory and storage the configured capacity, or else that of machine"`
	Simulated        int64        `json:"simulated" doc:"simulated part of the capacity"`
	Machine          bool         `json:"machine" doc:"the capacity is that of the portal's machine, on which alone workspaces run"`
	Ratio            int64        `json:"ratio" doc:"overcommit ratio, percent"`
	Allocatable      int64        `json:"allocatable" doc:"capacity multiplied by the ratio"`
	Allocated        models.Bound `json:"allocated" doc:"sum of the quotas of current and future projects"`
	AboveAllocatable int64        `json:"above_allocatable" doc:"amount allocated above what is allocatable"`
	AboveCapacity    int64        `json:"above_capacity" doc:"amount allocated above the capacity"`
}

// Capacity is the capacity of all resources, with the projects.
type Capacity struct {
	Resources  []ResourceCapacity `json:"resources"`
	Setting    models.Overcommit  `json:"setting"`
	Foreign    []ForeignWork      `json:"foreign" doc:"what other generations or copies of this installation run here"`
	Projects   []Project          `json:"projects" doc:"current and future projects"`
	NextCursor string             `json:"next_cursor,omitempty" doc:"cursor of the next page of projects; absent on the last page"`
}

// ForeignWork is what another generation or copy of this installation runs in one place.
type ForeignWork struct {
	Owner      string `json:"owner" doc:"ID and generation of the installation; empty before these were recorded"`
	Place      string `json:"place" doc:"directory or namespace"`
	Workspaces int    `json:"workspaces" doc:"number of workspaces and runs"`
}

func resourceCapacityOf(p projects.CapacityRow) ResourceCapacity {
	return ResourceCapacity{p.Name, p.Known, p.Capacity, p.Simulated, p.Machine, p.Ratio, p.Allocatable, models.Bound(p.Value),
		p.AboveAllocatable, p.AboveCapacity}
}

func (a rest) getCapacity(ctx context.Context, in *Paging) (*Found[Capacity], error) {
	var v projects.CapacityView
	list, err := listed(*in, func(p projects.ProjectView) int64 { return p.ID }, func(page store.Page) ([]projects.ProjectView, error) {
		one, err := a.Capacity.View(ctx, actorOf(ctx), page)
		if v.Rows == nil {
			v = one
		}
		return one.Projects, err
	}, func(p projects.ProjectView) Project { return projectOf(p, a.Store.Now()) })
	if err != nil {
		return nil, err
	}
	foreign, err := a.Workspaces.Foreign(actorOf(ctx))
	return found(v.Setting.Version, Capacity{models.Map(v.Rows, resourceCapacityOf), v.Setting,
		models.Map(foreign, func(f models.Foreign) ForeignWork { return ForeignWork(f) }), list.Body.Items, list.Body.NextCursor}, err)
}

func (a rest) setCapacity(ctx context.Context, in *UpdateSingleton[projects.OvercommitInput]) (*Found[models.Overcommit], error) {
	in.Body.Version = in.version
	o, err := a.Capacity.Set(ctx, actorOf(ctx), in.Body)
	return found(o.Version, o, err)
}
