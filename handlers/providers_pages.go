package handlers

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/pool/providers"
	"weir/web"
)

func (a *App) providersRoutes(p *echo.Group) {
	p.POST("/pool/providers", a.authorizeProviderPage)
	p.GET("/pool/providers/new", a.newProviderPage)
	p.GET("/pool/providers/:id", a.providerPage)
	p.POST("/pool/providers/:id", a.updateProviderPage)
	p.POST("/pool/providers/:id/drain", a.drainProviderPage)
	p.POST("/pool/providers/:id/resume", a.resumeProviderPage)
	p.POST("/pool/providers/:id/recall", a.recallProviderPage)
	p.POST("/pool/providers/:id/accept", a.acceptProviderPage)
	p.GET("/pool/providers/:id/revoke", a.confirmRevokeProviderPage)
	p.POST("/pool/providers/:id/revoke", a.revokeProviderPage)
	p.GET("/pool/providers/:id/remove", a.confirmRemoveProviderPage)
	p.POST("/pool/providers/:id/remove", a.removeProviderPage)
}

// portalURL is the address under which a request has reached the portal.
func (a *App) portalURL(r *http.Request) string {
	if a.Secure {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// newProviderForm is the page that asks for an authorization code.
func (a *App) newProviderForm(c echo.Context, f web.Form) (templ.Component, error) {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	if err := a.Access.Check(actor, policies.Platform, policies.ProviderWrite); err != nil {
		return nil, err
	}
	return web.NewProviderPage(web.NewProviderView{Form: f, Server: a.portalURL(c.Request())}), nil
}

func (a *App) newProviderPage(c echo.Context) error {
	page, err := a.newProviderForm(c, formOf(0))
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) authorizeProviderPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in := providers.AuthorizeInput{GPUCode: f.text("gpu_code"), Name: strings.TrimSpace(f.text("name")), OwnerID: a.accountID(ctx, f, "owner_id")}
	var code string
	var granted models.Authorization
	if err = f.err(nil); err == nil {
		code, granted, err = a.Enrolment.Authorize(ctx, actorOf(ctx), in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) { return a.newProviderForm(c, f.asTyped().Refuse(err)) })
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return a.render(c, http.StatusOK, web.NewProviderPage(web.NewProviderView{Code: code, GPUCode: granted.GPUCode, Until: granted.ExpiresAt,
		Server: a.portalURL(c.Request())}))
}

func (a *App) providerPage(c echo.Context) error {
	page, err := a.providerForm(c, nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

// providerForm is a provider's page; put changes the view for a form that came
// back, if one did.
func (a *App) providerForm(c echo.Context, put func(*web.ProviderView)) (templ.Component, error) {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	p, err := a.Pool.Provider(ctx, actor, number(c, "id"))
	if err != nil {
		return nil, err
	}
	v := web.ProviderView{Provider: providerView(p, actor.User.ID), Facts: p.Provider, Owner: p.OwnerName, Since: p.Since, Holders: p.Holders,
		Own: !p.Agent, Admin: a.Access.May(actor, policies.Platform, policies.ProviderWrite), Form: termsForm(p.Provider), Recall: formOf(0)} // whoever calls back means it, whatever has changed
	v.Recall.Values["recall.grace_minutes"] = "30"
	for _, d := range p.Devices {
		v.Shares += len(d.Shares)
		if d.ParentID == nil {
			v.Devices = append(v.Devices, web.Choice{ID: d.ID, Label: deviceLabel(d.Device)})
		}
	}
	v.Chosen = p.Chosen
	if v.Projects, v.MoreProjects, err = a.projectChoices(ctx, actor, p.Terms.Projects); err != nil {
		return nil, err
	}
	if v.Admin && p.OwnerID != nil {
		owner, err := a.Accounts.User(ctx, actor, *p.OwnerID)
		if err != nil {
			return nil, err
		}
		v.Form.Values["owner_id"] = owner.Email
	}
	if put != nil {
		put(&v)
	}
	return web.ProviderPage(v), nil
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
	if err = f.err(nil); err == nil {
		_, err = a.Providers.Update(ctx, actorOf(ctx), id, in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			return a.providerForm(c, func(v *web.ProviderView) {
				v.Facts.Terms.Hours = in.Terms.Hours
				v.Form = f.terms(in.Terms).Refuse(err)
			})
		})
	}
	a.Wake()
	return a.done(c, path("pool", "providers", id), models.Say("Terms saved."))
}

// changeProviderPage does to a provider what needs nothing but its version.
func (a *App) changeProviderPage(c echo.Context, did func(name string) models.Text, do func(ctx context.Context, actor policies.Actor, id, version int64) (models.Provider, error)) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	p, err := do(ctx, actorOf(ctx), number(c, "id"), f.version())
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			return a.providerForm(c, func(v *web.ProviderView) { v.Act = v.Act.Refuse(err) })
		})
	}
	a.Wake()
	to := path("pool", "providers", p.ID)
	if p.State == models.ProviderOffline {
		to = "/pool"
	}
	return a.done(c, to, did(p.Name))
}

func (a *App) drainProviderPage(c echo.Context) error {
	return a.changeProviderPage(c, func(name string) models.Text { return models.Say("%s is draining and accepts no new shares.", name) }, a.Providers.Drain)
}

func (a *App) resumeProviderPage(c echo.Context) error {
	return a.changeProviderPage(c, func(name string) models.Text { return models.Say("%s accepts new shares again.", name) }, a.Providers.Resume)
}

func (a *App) acceptProviderPage(c echo.Context) error {
	return a.changeProviderPage(c, func(name string) models.Text { return models.Say("The GPUs of %s were accepted.", name) }, a.Enrolment.Accept)
}

func (a *App) revokeProviderPage(c echo.Context) error {
	return a.changeProviderPage(c, func(name string) models.Text { return models.Say("The agent of %s was revoked.", name) }, a.Enrolment.Revoke)
}

func (a *App) removeProviderPage(c echo.Context) error {
	return a.changeProviderPage(c, func(name string) models.Text { return models.Say("%s was removed from the pool.", name) }, a.Providers.Remove)
}

func (a *App) recallProviderPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	id := number(c, "id")
	in := providers.RecallInput{GraceMinutes: f.number("recall.grace_minutes"), Reason: strings.TrimSpace(f.text("recall.reason")), Version: f.version()}
	if err = f.err(nil); err == nil {
		_, err = a.Providers.Recall(ctx, actorOf(ctx), id, in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			return a.providerForm(c, func(v *web.ProviderView) { v.Recall = f.asTyped().Refuse(within("recall.", err)) })
		})
	}
	a.Wake()
	return a.done(c, path("pool", "providers", id), models.Say("GPUs recalled. The members who use them have been notified."))
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

// confirmProviderPage asks before something is done to a provider that cannot be
// taken back.
func (a *App) confirmProviderPage(c echo.Context, question func(models.Provider) web.ConfirmView) error {
	ctx := c.Request().Context()
	p, err := a.Pool.Provider(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return err
	}
	if !p.Manage {
		return models.Forbidden("Only the owner of %s or an administrator can do this.", p.Name)
	}
	return a.render(c, http.StatusOK, web.ConfirmPage(question(p.Provider)))
}

func (a *App) confirmRemoveProviderPage(c echo.Context) error {
	return a.confirmProviderPage(c, web.ConfirmRemoveProvider)
}

func (a *App) confirmRevokeProviderPage(c echo.Context) error {
	if err := a.Access.Check(actorOf(c.Request().Context()), policies.Platform, policies.ProviderWrite); err != nil {
		return err
	}
	return a.confirmProviderPage(c, web.ConfirmRevokeAgent)
}
