package handlers

import (
	"context"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/web"
)

func (a *App) signInPolicyRoutes(p *echo.Group) {
	p.GET("/sign-in-policy", a.page(a.signInPolicyPage))
	p.POST("/sign-in-policy", a.submit(a.signInPolicyPage, a.setSignInPolicyPage))
	p.GET("/people/:id/second-factor/reset", a.page(a.confirmResetSecondFactorPage))
	p.POST("/people/:id/second-factor/reset", a.submit(a.confirmResetSecondFactorPage, a.resetSecondFactorPage))
}

func (a *App) signInPolicyPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	p, err := a.Accounts.SignInPolicy(ctx, actorOf(ctx))
	v := web.SignInPolicyView{Form: formOf(p.Version)}
	v.Form.Values["second_factor"] = string(p.SecondFactor)
	v.Form = submittedOr(c, v.Form)
	return web.SignInPolicyPage(v), err
}

func (a *App) setSignInPolicyPage(ctx context.Context, _ echo.Context, f *form) (redirect, error) {
	in := policies.SignInPolicyInput{SecondFactor: models.Audience(f.text("second_factor")), Version: f.version()}
	_, err := a.Accounts.SetSignInPolicy(ctx, actorOf(ctx), in)
	return redirect{"/sign-in-policy", models.Say("Sign-in policy saved.")}, err
}

func (a *App) confirmResetSecondFactorPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	u, _, err := a.Accounts.UserForm(ctx, actorOf(ctx), number(c, "id"))
	return confirmPage(c, web.ConfirmResetSecondFactor(u)), err
}

func (a *App) resetSecondFactorPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	user := number(c, "id")
	err := a.Accounts.ResetSecondFactor(ctx, actorOf(ctx), user)
	return redirect{path("people", user), models.Say("The second factor of this account was removed and its sessions were ended.")}, err
}
