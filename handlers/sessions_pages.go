package handlers

import (
	"context"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/web"
)

func (a *App) ownSessionsRoutes(p *echo.Group) {
	p.POST("/account", a.submit(a.accountPage, a.updateSelfPage))
	p.GET("/account/sessions/:id/end", a.page(a.confirmEndSessionPage))
	p.POST("/account/sessions/:id/end", a.submit(nil, a.endSessionPage))
	p.GET("/account/sessions/end", a.page(confirmEndSessionsPage))
	p.POST("/account/sessions/end", a.submit(nil, a.endSessionsPage))
}

func (a *App) updateSelfPage(ctx context.Context, _ echo.Context, f *form) (redirect, error) {
	zone := strings.TrimSpace(f.text("time_zone"))
	_, err := a.Accounts.UpdateSelf(ctx, actorOf(ctx), policies.SelfChange{Name: f.text("name"), TimeZone: &zone, Version: f.version()})
	return redirect{"/account", models.Say("Saved.")}, err
}

func (a *App) confirmEndSessionPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	list, err := a.Accounts.Sessions(ctx, actorOf(ctx))
	s, err := find(list, err, models.NotFound("session"), func(s models.Session) bool { return s.ID() == number(c, "id") })
	return confirmPage(c, web.ConfirmEndSession(ctx, s)), err
}

func (a *App) endSessionPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	return redirect{"/account", models.Say("The session was ended.")}, a.Accounts.EndSession(ctx, actorOf(ctx), number(c, "id"))
}

func confirmEndSessionsPage(context.Context, echo.Context) (templ.Component, error) {
	return web.ConfirmPage(web.ConfirmEndSessions()), nil
}

func (a *App) endSessionsPage(ctx context.Context, _ echo.Context, _ *form) (redirect, error) {
	return redirect{"/account", models.Say("Your other sessions were ended.")},
		a.continueSession(ctx, a.Accounts.EndSessions(ctx, actorOf(ctx)))
}
