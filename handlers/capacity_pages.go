package handlers

import (
	"net/http"
	"strconv"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool/projects"
	"weir/web"
)

func (a *App) capacityRoutes(p *echo.Group) {
	p.GET("/capacity", a.capacityPage)
	p.POST("/capacity", a.updateCapacityPage)
}

func allocationRows(rows []projects.CapacityRow) (list []web.AllocationRow) {
	for _, r := range rows {
		list = append(list, web.AllocationRow{Amount: r.Amount, Known: r.Known, Capacity: r.Capacity, Simulated: r.Simulated, Ratio: r.Ratio, Limit: r.Limit,
			Excess: r.Excess, Missing: r.Missing})
	}
	return list
}

func (a *App) capacityPage(c echo.Context) error {
	page, err := a.capacityForm(c, nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

// capacityForm is the page of promises, with the percentages as they were
// typed or, when typed is nil, as they are.
func (a *App) capacityForm(c echo.Context, typed *web.Form) (templ.Component, error) {
	ctx := c.Request().Context()
	p, err := a.Capacity.View(ctx, actorOf(ctx), pageAfter(c, listLimit))
	if err != nil {
		return nil, err
	}
	v := web.CapacityView{Rows: allocationRows(p.Rows), Form: formOf(p.Setting.Version)}
	for _, r := range p.Setting.Ratio.Amounts() {
		v.Form.Values["ratio."+r.Name] = strconv.FormatInt(r.Value, 10)
	}
	for _, s := range p.Setting.Stated().Amounts() {
		if s.Value > 0 {
			v.Form.Values["stated."+s.Name] = models.ExactQuantity(s.Name, s.Value)
		}
	}
	if typed != nil {
		v.Form = *typed
	}
	for _, to := range p.Projects {
		v.Projects = append(v.Projects, web.AllocatedTo{ID: to.ID, Name: to.Name, Quota: to.Quota, Allocated: to.Allocated, InUse: to.InUse})
	}
	if n := len(p.Projects); n > 0 {
		v.Next = nextPage(c, n, listLimit, p.Projects[n-1].ID)
	}
	return web.CapacityPage(v), nil
}

func (a *App) updateCapacityPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in := f.overcommitInput()
	if err = f.err(nil); err == nil {
		_, err = a.Capacity.Set(c.Request().Context(), actorOf(c.Request().Context()), in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			w := f.asTyped().Refuse(err)
			return a.capacityForm(c, &w)
		})
	}
	return a.done(c, "/capacity", models.Say("Overcommit settings saved."))
}

// overcommitInput reads how much may be promised; percentages are plain numbers.
func (f *form) overcommitInput() projects.OvercommitInput {
	percent := func(name string) int64 {
		n, err := models.ParseCount(f.text("ratio." + name))
		if err != nil {
			f.problems.Add("ratio."+name, "must be a whole number, 0 or greater")
		}
		return n
	}
	return projects.OvercommitInput{Version: f.version(),
		Ratio: models.Resources{GPUCores: percent("gpu_cores"), GPUMemoryMiB: percent("gpu_memory_mib"), CPUMilli: percent("cpu_milli"),
			MemoryMiB: percent("memory_mib"), StorageMiB: percent("storage_mib")},
		Stated: projects.Stated{CPUMilli: f.number("stated.cpu_milli"), MemoryMiB: f.number("stated.memory_mib"), StorageMiB: f.number("stated.storage_mib")}}
}
