package handlers

import (
	"context"
	"net/http"

	"weir/models"
	"weir/pool/projects"
)

func (a rest) capacityOperations(s section) {
	register(a, s, route{http.MethodGet, "/promises", 200, "get-promises", "Compare what projects were promised with what the pool has; for platform administrators"}, a.getPromises)
	register(a, s, route{http.MethodPut, "/promises", 200, "set-promises", "Set how much of each resource may be promised; for platform administrators"}, a.setPromises)
}

// Promise is what there is of one resource, and what of it was promised.
type Promise struct {
	Resource  string `json:"resource" enum:"gpu_cores,gpu_memory_mib,cpu_milli,memory_mib,storage_mib"`
	Known     bool   `json:"known" doc:"whether it is known how much there is"`
	Capacity  int64  `json:"capacity" doc:"of machines that lend; of CPU, memory and storage what was stated"`
	Simulated int64  `json:"simulated" doc:"of the capacity what simulated GPUs have"`
	Ratio     int64  `json:"ratio" doc:"percent of the capacity that may be promised"`
	Limit     int64  `json:"limit" doc:"capacity times ratio"`
	Promised  int64  `json:"promised" doc:"sum of the quotas of projects whose period is not over"`
	Excess    int64  `json:"excess" doc:"promised beyond the limit"`
	Missing   int64  `json:"missing" doc:"promised beyond the capacity"`
}

// Promises are what was promised of all resources, and to whom.
type Promises struct {
	Resources  []Promise         `json:"resources"`
	Setting    models.Overcommit `json:"setting"`
	Projects   []Project         `json:"projects" doc:"whose period of use is not over"`
	NextCursor string            `json:"next_cursor,omitempty" doc:"cursor of the next page of projects; absent on the last"`
}

func promiseOf(p projects.CapacityRow) Promise {
	return Promise{p.Name, p.Known, p.Capacity, p.Simulated, p.Ratio, p.Limit, p.Value, p.Excess, p.Missing}
}

func (a rest) getPromises(ctx context.Context, in *Paging) (*Found[Promises], error) {
	var v projects.CapacityView
	list, err := listed(*in, func(p projects.ProjectView) int64 { return p.ID }, func(page models.Page) ([]projects.ProjectView, error) {
		one, err := a.Promises.View(ctx, actorOf(ctx), page)
		if v.Rows == nil {
			v = one
		}
		return one.Projects, err
	}, func(p projects.ProjectView) Project { return projectOf(p, a.Store.Now()) })
	if err != nil {
		return nil, err
	}
	return found(v.Setting.Version, Promises{shown(v.Rows, promiseOf), v.Setting, list.Body.Items, list.Body.NextCursor}, nil)
}

// OvercommitUpdate changes how much may be promised.
type OvercommitUpdate struct {
	IfMatch
	Body projects.OvercommitInput
}

func (a rest) setPromises(ctx context.Context, in *OvercommitUpdate) (*Found[models.Overcommit], error) {
	var err error
	if in.Body.Version, err = in.version(); err != nil {
		return nil, err
	}
	o, err := a.Promises.Set(ctx, actorOf(ctx), in.Body)
	return found(o.Version, o, err)
}
