package handlers

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool/providers"
	"weir/web"
)

func (a *App) providersRoutes(p *echo.Group) {
	p.POST("/pool/providers", a.authorizeProviderPage)
	p.GET("/pool/providers/new", a.page(a.newProviderPage))
	p.GET("/pool/providers/:id", a.page(a.providerWith(nil)))
	p.POST("/pool/providers/:id", a.updateProviderPage)
	p.POST("/pool/providers/:id/drain", a.changeProviderPage(a.Providers.Drain, func(name string) models.Text {
		return models.Say("%s is draining and accepts no new shares.", name)
	}))
	p.POST("/pool/providers/:id/resume", a.changeProviderPage(a.Providers.Resume, func(name string) models.Text {
		return models.Say("%s accepts new shares again.", name)
	}))
	p.POST("/pool/providers/:id/recall", a.recallProviderPage)
	p.POST("/pool/providers/:id/accept", a.changeProviderPage(a.Enrollment.Accept, func(name string) models.Text {
		return models.Say("The GPUs of %s were accepted.", name)
	}))
	p.GET("/pool/providers/:id/revoke", a.page(a.confirmRevokeProviderPage))
	p.POST("/pool/providers/:id/revoke", a.changeProviderPage(a.Enrollment.Revoke, func(name string) models.Text {
		return models.Say("The agent of %s was revoked.", name)
	}))
	p.GET("/pool/providers/:id/remove", a.page(a.confirmRemoveProviderPage))
	p.POST("/pool/providers/:id/remove", a.changeProviderPage(a.Providers.Remove, func(name string) models.Text {
		return models.Say("%s was removed from the pool.", name)
	}))
}

// newProviderPage is the form that authorizes an agent.
func (a *App) newProviderPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	_, err := a.Pool.AgentForm(ctx, actorOf(ctx), 0)
	return web.NewProviderPage(web.NewProviderView{Form: submittedOr(c, formOf(0)), Server: a.portalURL(c.Request())}), err
}

func (a *App) authorizeProviderPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in := providers.AuthorizeInput{GPUCode: f.text("gpu_code"), Name: strings.TrimSpace(f.text("name")),
		OwnerID: a.accountID(ctx, f, "owner_id")}
	var code string
	var granted models.Authorization
	if err = f.errWith(in.Check()); err == nil {
		code, granted, err = a.Enrollment.Authorize(ctx, actorOf(ctx), in)
	}
	if err != nil {
		return a.refused(c, f, err, a.newProviderPage)
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return a.render(c, http.StatusOK, web.NewProviderPage(web.NewProviderView{Code: code, GPUCode: granted.GPUCode, Until: granted.ExpiresAt,
		Server: a.portalURL(c.Request())}))
}

// providerWith is a provider's page; put, if not nil, changes the view for a form
// that is shown again.
func (a *App) providerWith(put func(*web.ProviderView)) pageFunc {
	return func(ctx context.Context, c echo.Context) (templ.Component, error) {
		v, err := a.providerView(ctx, number(c, "id"))
		if err == nil && put != nil {
			put(&v)
		}
		return web.ProviderPage(v), err
	}
}

func (a *App) providerView(ctx context.Context, id int64) (v web.ProviderView, err error) {
	actor := actorOf(ctx)
	p, err := a.Pool.Provider(ctx, actor, id)
	if err != nil {
		return v, err
	}
	v = web.ProviderView{Provider: providerView(p, actor.User.ID), Facts: p.Provider, Owner: p.OwnerName, Since: p.Since, Shares: p.Shares(),
		Users: p.Users, Own: !p.Agent, NamedByNode: providers.NamedByNode(p.Provider), Form: termsForm(p.Provider)}
	v.Recall = formOf(0) // applies to any version
	v.Recall.Values["recall.grace_minutes"] = "30"
	v.Blocked = a.Providers.CheckRemove(p.Provider, int64(p.Shares()))
	for _, d := range p.Devices {
		if d.ParentID == nil {
			v.Devices = append(v.Devices, web.Choice{ID: d.ID, Label: deviceLabel(d.Device)})
		}
	}
	v.Chosen, v.Latencies = p.Chosen, p.Latencies
	if v.Projects, v.MoreProjects, err = a.projectChoices(ctx, actor, p.Terms.Projects); err != nil {
		return v, err
	}
	if p.Manage && p.OwnerID != nil {
		owner, err := a.Accounts.User(ctx, actor, *p.OwnerID)
		if err != nil {
			return v, err
		}
		v.Form.Values["owner_id"] = owner.Email
	}
	return v, nil
}

func (a *App) updateProviderPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	id, in := number(c, "id"), f.providerInput()
	if owner := a.accountID(ctx, f, "owner_id"); owner != 0 {
		in.OwnerID = &owner
	}
	if err = f.errWith(in.Check()); err == nil {
		_, err = a.Providers.Update(ctx, actorOf(ctx), id, in)
	}
	if err != nil {
		return a.refused(c, f, err, a.providerWith(func(v *web.ProviderView) {
			v.Facts.Terms.Hours = in.Terms.Hours
			v.Form = f.terms(in.Terms).Refuse(err)
		}))
	}
	return a.redirectWithFlash(c, path("pool", "providers", id), models.Say("Terms saved."))
}

// changeProviderPage handles a button that needs only the provider's version.
func (a *App) changeProviderPage(do changeProvider, did func(name string) models.Text) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx := c.Request().Context()
		f, err := readForm(c)
		if err != nil {
			return err
		}
		p, err := do(ctx, actorOf(ctx), number(c, "id"), f.version())
		if err != nil {
			return a.refused(c, f, err, a.providerWith(func(v *web.ProviderView) { v.Act = v.Act.Refuse(err) }))
		}
		to := path("pool", "providers", p.ID)
		if p.State == models.ProviderOffline {
			to = "/pool"
		}
		return a.redirectWithFlash(c, to, did(p.Name))
	}
}

func (a *App) recallProviderPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	id := number(c, "id")
	in := providers.RecallInput{GraceMinutes: f.number("recall.grace_minutes"), Reason: strings.TrimSpace(f.text("recall.reason")),
		Version: f.version()}
	if err = f.errWith(within("recall.", in.Check())); err == nil {
		_, err = a.Providers.Recall(ctx, actorOf(ctx), id, in)
	}
	if err != nil {
		return a.refused(c, f, err, a.providerWith(func(v *web.ProviderView) { v.Recall = f.asSubmitted().Refuse(within("recall.", err)) }))
	}
	return a.redirectWithFlash(c, path("pool", "providers", id), models.Say("GPUs recalled. The members who use them have been notified."))
}

// within names an error's fields as they are called inside something larger.
func within(prefix string, err error) error {
	var e *models.Error
	if !errors.As(err, &e) {
		return err
	}
	named := *e
	named.Fields = nil
	for _, field := range e.Fields {
		if !strings.HasPrefix(field.Name, prefix) {
			field.Name = prefix + field.Name
		}
		named.Fields = append(named.Fields, field)
	}
	return &named
}

func (a *App) confirmRemoveProviderPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	p, err := a.Pool.ProviderForm(ctx, actorOf(ctx), number(c, "id"))
	return web.ConfirmPage(web.ConfirmRemoveProvider(p.Provider, a.Providers.CheckRemove(p.Provider, int64(p.Shares())))), err
}

func (a *App) confirmRevokeProviderPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	p, err := a.Pool.AgentForm(ctx, actorOf(ctx), number(c, "id"))
	return web.ConfirmPage(web.ConfirmRevokeAgent(p.Provider)), err
}
