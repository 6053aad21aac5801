package handlers

import (
	"context"
	"errors"
	"strconv"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool/projects"
	"weir/web"
)

func (a *App) capacityRoutes(p *echo.Group) {
	p.GET("/capacity", a.page(a.capacityPage))
	p.POST("/capacity", a.submit(a.capacityPage, a.updateCapacityPage))
}

func capacityRows(rows []projects.CapacityRow) (list []web.CapacityRow) {
	for _, r := range rows {
		list = append(list, web.CapacityRow{Amount: r.Amount, Known: r.Known, Capacity: r.Capacity, Simulated: r.Simulated,
			Machine: r.Machine, Ratio: r.Ratio, Allocatable: r.Allocatable,
			AboveAllocatable: r.AboveAllocatable, AboveCapacity: r.AboveCapacity})
	}
	return list
}

// capacityPage is the page of quotas and capacity, with the form of the overcommit.
func (a *App) capacityPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	p, err := a.Capacity.View(ctx, actorOf(ctx), pageAfter(c))
	if err != nil {
		return nil, err
	}
	foreign, err := a.Workspaces.Foreign(actorOf(ctx))
	if err != nil {
		return nil, err
	}
	v := web.CapacityView{Rows: capacityRows(p.Rows), Form: formOf(p.Setting.Version), Foreign: foreign}
	for _, r := range p.Setting.Ratio.Amounts() {
		v.Form.Values["ratio."+r.Name] = strconv.FormatInt(r.Value, 10)
	}
	for _, s := range p.Setting.Stated().Amounts() {
		if s.Value > 0 {
			v.Form.Values["stated."+s.Name] = models.ExactQuantity(s.Name, s.Value)
		}
	}
	v.Form = submittedOr(c, v.Form)
	for _, to := range p.Projects {
		v.Projects = append(v.Projects, web.AllocatedTo{ID: to.ID, Name: to.Name, Quota: to.Quota, Allocated: to.Allocated, InUse: to.InUse})
	}
	v.Next = nextPage(c, p.Projects, func(p projects.ProjectView) int64 { return p.ID })
	return web.CapacityPage(v), nil
}

func (a *App) updateCapacityPage(ctx context.Context, _ echo.Context, f *form) (redirect, error) {
	in := f.overcommitInput()
	if err := f.errWith(in.Check()); err != nil {
		return redirect{}, err
	}
	_, err := a.Capacity.Set(ctx, actorOf(ctx), in)
	return redirect{"/capacity", models.Say("Overcommit settings saved.")}, err
}

// overcommitInput reads the overcommit settings; percentages are plain numbers.
func (f *form) overcommitInput() projects.OvercommitInput {
	percent := func(name string) int64 {
		n, err := models.ParseCount(f.text("ratio." + name))
		if errors.Is(err, models.ErrTooLarge) {
			return models.MaxAmount // which the service refuses with its own bound
		}
		if err != nil {
			f.problems.Add("ratio."+name, "must be a whole number, 0 or greater")
		}
		return n
	}
	return projects.OvercommitInput{Version: f.version(),
		Ratio: models.Resources{GPUCores: percent("gpu_cores"), GPUMemoryMiB: percent("gpu_memory_mib"), CPUMilli: percent("cpu_milli"),
			MemoryMiB: percent("memory_mib"), StorageMiB: percent("storage_mib")},
		Stated: projects.Stated{CPUMilli: f.number("stated.cpu_milli"), MemoryMiB: f.number("stated.memory_mib"),
			StorageMiB: f.number("stated.storage_mib")}}
}
