package handlers

import (
	"context"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/pool/projects"
	"weir/web"
)

func (a *App) accountingRoutes(p *echo.Group) {
	p.GET("/accounting", a.spanPage(a.accountingPage))
	p.GET("/projects/:id/accounting", a.spanPage(a.accountingPage))
	p.GET("/prices", a.page(a.pricesPage))
	p.GET("/prices/new", a.page(a.newPricePage))
	p.POST("/prices", a.submit(a.newPricePage, a.setPricePage))
}

// accountingPage shows what the shares of a project took, or those of all projects.
func (a *App) accountingPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	var project int64
	if c.Param("id") != "" {
		project = number(c, "id")
	}
	filter, err := accountingFilter(c)
	if err != nil {
		return nil, err
	}
	in := projects.AccountingQuery{UsageQuery: usageQuery(c), Group: c.QueryParam("group"), AccountingFilter: filter}
	u, err := a.Projects.Accounting(ctx, actorOf(ctx), project, in, pageAfter(c))
	if err != nil {
		return nil, err
	}
	v := web.AccountingView{UsageRange: a.usageRange(c, u.From, u.Until), Project: u.Project, Group: u.Group,
		Filter: web.AccountingFilter(u.Filter), Member: u.Member,
		OwnOnly: u.OwnOnly, Currency: u.Currency, Total: accountedRow(u.Total), Rows: models.Map(u.Rows, accountedRow),
		Steps: models.Map(u.Steps, func(s projects.AccountingStep) web.AccountingStep { return web.AccountingStep(s) })}
	if u.Next > 0 {
		v.Next = pageAt(c, store.Page{After: u.Next})
	}
	return web.AccountingPage(v), nil
}

// accountingFilter is the filter in an address, unless that was refused.
func accountingFilter(c echo.Context) (projects.AccountingFilter, error) {
	if submittedOr(c, web.Form{}).Failed() {
		return projects.AccountingFilter{}, nil
	}
	q := form{values: c.QueryParams()}
	f := projects.AccountingFilter{UserID: q.number("user_id"), Model: q.text("model"), Holder: models.HolderKind(q.text("holder")),
		Billing: models.Billing(q.text("billing"))}
	return f, q.problems.Err()
}

func accountedRow(r projects.AccountingRow) web.AccountingRow {
	return web.AccountingRow{Key: r.Key, Name: r.Name, CoreMS: r.CoreMS, ReservedMS: r.ReservedMS,
		ReservedUnusedMS: r.ReservedUnusedMS, UnpricedMS: r.UnpricedMS, Cost: r.Cost,
		Simulated: r.Simulated, MeasuredMS: r.MeasuredMS, UsedMS: r.UsedMS}
}

func (a *App) pricesPage(ctx context.Context, _ echo.Context) (templ.Component, error) {
	list, err := a.Projects.Prices(ctx, actorOf(ctx))
	return web.PricesPage(web.PricesView{Rows: list, Now: a.Store.Now()}), err
}

func (a *App) newPricePage(ctx context.Context, c echo.Context) (templ.Component, error) {
	known, err := a.Projects.PriceForm(ctx, actorOf(ctx))
	return web.PriceFormPage(web.PriceFormView{Form: submittedOr(c, formOf(0)), Models: known}), err
}

func (a *App) setPricePage(ctx context.Context, _ echo.Context, f *form) (redirect, error) {
	in := f.priceInput()
	if err := f.errWith(a.Projects.CheckPrice(ctx, actorOf(ctx), in)); err != nil {
		return redirect{}, err
	}
	p, err := a.Projects.SetPrice(ctx, actorOf(ctx), in)
	return redirect{"/prices", models.Say("Price of %s set.", p.Model)}, err
}

// priceInput reads a price; its time has the offset of the browser, or is in UTC.
func (f *form) priceInput() projects.PriceInput {
	in := projects.PriceInput{Model: f.text("model"), Billing: models.Billing(f.text("billing")), Currency: f.text("currency")}
	var err error
	if in.Micros, err = models.ParseMicros(f.text("micros")); err != nil {
		f.problems.Add("micros", "must be a price such as 0.012, with at most six decimals")
	}
	in.ValidFrom = f.localTime("valid_from", f.timeZone())
	return in
}
