package handlers

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/pool"
	"weir/web"
)

// portalURL is the address under which a request has reached the portal.
func (a *App) portalURL(r *http.Request) string {
	if a.Secure {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// owners are the accounts that can own a provider.
func (a *App) owners(ctx context.Context) (list []web.Option, err error) {
	users, err := all(func(u models.User) int64 { return u.ID }, func(page models.Page) ([]models.User, error) {
		return a.Accounts.Users(ctx, actorOf(ctx), "", page)
	})
	for _, u := range users {
		if !u.Disabled {
			list = append(list, web.Option{Value: strconv.FormatInt(u.ID, 10), Label: u.Name + " · " + u.Email})
		}
	}
	return list, err
}

// ownersOf are the accounts that can own a provider, and who owns it now:
// perhaps nobody, perhaps somebody who cannot be chosen any more.
func (a *App) ownersOf(c echo.Context, p pool.ProviderView) ([]web.Option, error) {
	list, err := a.owners(c.Request().Context())
	now := web.Option{Label: web.T(a.spoken(c), "nobody")}
	if p.OwnerID != nil {
		now = web.Option{Value: strconv.FormatInt(*p.OwnerID, 10), Label: p.OwnerName}
	}
	if !slices.ContainsFunc(list, func(o web.Option) bool { return o.Value == now.Value }) {
		list = append([]web.Option{now}, list...)
	}
	return list, err
}

// newProvider is the page that asks for an authorization code.
func (a *App) newProvider(c echo.Context, f web.Form) (templ.Component, error) {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	if err := a.Access.Check(actor, 0, "provider", "write"); err != nil {
		return nil, err
	}
	owners, err := a.owners(ctx)
	return web.NewProviderPage(web.NewProviderView{Form: f, Owners: owners, Server: a.portalURL(c.Request())}), err
}

func (a *App) newProviderPage(c echo.Context) error {
	page, err := a.newProvider(c, formOf(0))
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) authorizeProvider(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in := pool.AuthorizeInput{GPUCode: f.text("gpu_code"), Name: strings.TrimSpace(f.text("name")), OwnerID: f.number("owner_id")}
	var code string
	var granted models.Authorization
	if err = f.err(nil); err == nil {
		code, granted, err = a.Enrolment.Authorize(ctx, actorOf(ctx), in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) { return a.newProvider(c, f.web().Refuse(err)) })
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return a.render(c, http.StatusOK, web.NewProviderPage(web.NewProviderView{Code: code, GPUCode: granted.GPUCode, Until: granted.ExpiresAt,
		Server: a.portalURL(c.Request())}))
}

func (a *App) providerPage(c echo.Context) error {
	page, err := a.provider(c, nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

// provider is a provider's page; put changes the view for a form that came
// back, if one did.
func (a *App) provider(c echo.Context, put func(*web.ProviderView)) (templ.Component, error) {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	p, err := a.Pool.Provider(ctx, actor, number(c, "id"))
	if err != nil {
		return nil, err
	}
	v := web.ProviderView{Provider: providerView(p, actor.User.ID), Facts: p.Provider, Owner: p.OwnerName, Since: p.Since, Holders: p.Holders,
		Own: !p.Agent, Admin: a.Access.May(actor, 0, "provider", "write"), Form: termsForm(p.Provider), Recall: formOf(0)} // whoever calls back means it, whatever has changed
	v.Recall.Values["recall.notice_minutes"] = "30"
	for _, d := range p.Devices {
		v.Shares += len(d.Shares)
		if d.ParentID == nil {
			v.Devices = append(v.Devices, web.Choice{ID: d.ID, Label: deviceLabel(d.Device)})
		}
	}
	v.Chosen = p.Chosen
	if v.Projects, err = a.projectChoices(ctx, actor, p.Terms.Projects); err != nil {
		return nil, err
	}
	if v.Admin {
		if v.Owners, err = a.ownersOf(c, p); err != nil {
			return nil, err
		}
	}
	if put != nil {
		put(&v)
	}
	return web.ProviderPage(v), nil
}

// projectChoices are the projects that the reader may see, and those that are
// chosen already, which may be foreign.
func (a *App) projectChoices(ctx context.Context, actor policies.Actor, chosen []int64) (list []web.Choice, err error) {
	projects, err := all(func(p pool.ProjectView) int64 { return p.ID }, func(page models.Page) ([]pool.ProjectView, error) {
		return a.Ledger.Projects(ctx, actor, page)
	})
	seen := map[int64]bool{}
	for _, p := range projects {
		seen[p.ID] = true
		list = append(list, web.Choice{ID: p.ID, Label: p.Name})
	}
	for _, id := range chosen {
		if !seen[id] {
			list = append(list, web.Choice{ID: id, Label: "№ " + strconv.FormatInt(id, 10)})
		}
	}
	return list, err
}

func (a *App) updateProvider(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	id, in := number(c, "id"), f.provider()
	if err = f.err(nil); err == nil {
		_, err = a.Pool.UpdateProvider(ctx, actorOf(ctx), id, in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			return a.provider(c, func(v *web.ProviderView) {
				v.Facts.Terms.Hours = in.Terms.Hours
				v.Form = f.terms(in.Terms).Refuse(err)
			})
		})
	}
	a.Wake()
	return a.done(c, path("pool", "providers", id), models.Say("The terms have been saved."))
}

// change does to a provider what needs nothing but its version.
func (a *App) change(c echo.Context, did func(name string) models.Text, do func(ctx context.Context, actor policies.Actor, id, version int64) (models.Provider, error)) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	p, err := do(ctx, actorOf(ctx), number(c, "id"), f.version())
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			return a.provider(c, func(v *web.ProviderView) { v.Act = v.Act.Refuse(err) })
		})
	}
	a.Wake()
	to := path("pool", "providers", p.ID)
	if p.State == models.ProviderOffline {
		to = "/pool"
	}
	return a.done(c, to, did(p.Name))
}

func (a *App) drainProvider(c echo.Context) error {
	return a.change(c, func(name string) models.Text { return models.Say("%s lends nothing new from now on.", name) }, a.Pool.Drain)
}

func (a *App) resumeProvider(c echo.Context) error {
	return a.change(c, func(name string) models.Text { return models.Say("%s lends again.", name) }, a.Pool.Resume)
}

func (a *App) acceptProvider(c echo.Context) error {
	return a.change(c, func(name string) models.Text { return models.Say("The GPUs of %s have been accepted.", name) }, a.Enrolment.Accept)
}

func (a *App) revokeProvider(c echo.Context) error {
	return a.change(c, func(name string) models.Text { return models.Say("The agent of %s has been revoked.", name) }, a.Enrolment.Revoke)
}

func (a *App) removeProvider(c echo.Context) error {
	return a.change(c, func(name string) models.Text { return models.Say("%s has left the pool.", name) }, a.Pool.Remove)
}

func (a *App) recallProvider(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	id := number(c, "id")
	in := pool.RecallInput{NoticeMinutes: f.number("recall.notice_minutes"), Reason: strings.TrimSpace(f.text("recall.reason")), Version: f.version()}
	if err = f.err(nil); err == nil {
		_, err = a.Pool.Recall(ctx, actorOf(ctx), id, in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			return a.provider(c, func(v *web.ProviderView) { v.Recall = f.web().Refuse(within("recall.", err)) })
		})
	}
	a.Wake()
	return a.done(c, path("pool", "providers", id), models.Say("The GPUs have been called back; their holders have been told."))
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

// confirmProvider asks before something is done to a provider that cannot be
// taken back.
func (a *App) confirmProvider(c echo.Context, question func(models.Provider) web.ConfirmView) error {
	ctx := c.Request().Context()
	p, err := a.Pool.Provider(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return err
	}
	if !p.Manage {
		return models.Forbidden("Only the owner of %s and administrators may do this.", p.Name)
	}
	return a.render(c, http.StatusOK, web.ConfirmPage(question(p.Provider)))
}

func (a *App) confirmRemoveProvider(c echo.Context) error {
	return a.confirmProvider(c, web.ConfirmRemoveProvider)
}

func (a *App) confirmRevokeProvider(c echo.Context) error {
	return a.confirmProvider(c, web.ConfirmRevokeAgent)
}
