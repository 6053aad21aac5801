package handlers

import (
	"context"
	"net/http"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/web"
)

func (a *App) secondFactorRoutes(p *echo.Group) {
	setup, disable := a.proofPage(web.SetupSecondFactorPage), a.proofPage(web.DisableSecondFactorPage)
	p.GET("/account/second-factor/setup", a.page(setup))
	p.POST("/account/second-factor/setup", a.submit(setup, a.beginSecondFactorPage))
	p.GET("/account/second-factor/confirm", a.confirmSecondFactorPage)
	p.POST("/account/second-factor/confirm", a.submitConfirmSecondFactorPage)
	p.GET("/account/second-factor/recovery-codes", a.page(a.proofPage(web.NewRecoveryCodesPage)))
	p.POST("/account/second-factor/recovery-codes", a.createRecoveryCodesPage)
	p.GET("/account/second-factor/disable", a.page(disable))
	p.POST("/account/second-factor/disable", a.submit(disable, a.disableSecondFactorPage))
}

// secondFactorView is the second factor of the reader's own account.
func secondFactorView(s policies.SecondFactorState) web.SecondFactor {
	return web.SecondFactor{EnabledAt: s.EnabledAt, RecoveryCodes: s.RecoveryCodes, Required: s.Required, Available: s.Available}
}

// proofPage is a form for the password, and a code if a second factor is enabled.
func (a *App) proofPage(page func(web.ProofView) templ.Component) pageFunc {
	return func(ctx context.Context, c echo.Context) (templ.Component, error) {
		s, err := a.Accounts.SecondFactor(ctx, actorOf(ctx))
		return page(web.ProofView{Form: submittedOr(c, formOf(0)), SecondFactor: secondFactorView(s)}), err
	}
}

func (f *form) proof() policies.Proof {
	return policies.Proof{Password: f.text("password"), Code: f.text("code")}
}

func (a *App) beginSecondFactorPage(ctx context.Context, _ echo.Context, f *form) (redirect, error) {
	_, err := a.Accounts.BeginSecondFactor(ctx, actorOf(ctx), f.proof())
	return redirect{to: "/account/second-factor/confirm"}, err
}

// enrollmentPage shows the secret of a new authenticator app; action takes a code of it.
func enrollmentPage(c echo.Context, e policies.Enrollment, action, back string) (templ.Component, error) {
	code, err := web.QRCode(e.URI)
	return web.EnrollmentPage(web.EnrollmentView{Form: submittedOr(c, formOf(0)), QR: code, Secret: e.Secret, ExpiresAt: e.ExpiresAt,
		Action: action, Back: back}), err
}

func (a *App) newAppPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	e, err := a.Accounts.Enrollment(ctx, actorOf(ctx))
	if err != nil {
		return nil, err
	}
	return enrollmentPage(c, e, "/account/second-factor/confirm", "/account")
}

// confirmSecondFactorPage shows a new authenticator app; without one, it begins anew.
func (a *App) confirmSecondFactorPage(c echo.Context) error {
	page, err := a.newAppPage(c.Request().Context(), c)
	if models.KindOf(err) == models.KindConflict {
		return c.Redirect(http.StatusSeeOther, "/account/second-factor/setup")
	}
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) submitConfirmSecondFactorPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	codes, err := a.Accounts.ConfirmSecondFactor(ctx, actorOf(ctx), f.text("code"))
	if models.KindOf(err) == models.KindConflict { // not in time
		return c.Redirect(http.StatusSeeOther, "/account/second-factor/setup")
	}
	if err := a.continueSession(ctx, err); err != nil {
		return a.refused(c, f, err, a.newAppPage)
	}
	return a.render(c, http.StatusOK, web.RecoveryCodesPage(web.RecoveryCodesView{Codes: codes, Next: "/account"}))
}

// createRecoveryCodesPage makes recovery codes, and shows them once.
func (a *App) createRecoveryCodesPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	codes, err := a.Accounts.NewRecoveryCodes(ctx, actorOf(ctx), f.proof())
	if err != nil {
		return a.refused(c, f, err, a.proofPage(web.NewRecoveryCodesPage))
	}
	return a.render(c, http.StatusCreated, web.RecoveryCodesPage(web.RecoveryCodesView{Codes: codes, Next: "/account"}))
}

func (a *App) disableSecondFactorPage(ctx context.Context, _ echo.Context, f *form) (redirect, error) {
	err := a.Accounts.DisableSecondFactor(ctx, actorOf(ctx), f.proof())
	return redirect{"/account", models.Say("The second factor was disabled. Your other sessions were ended.")}, a.continueSession(ctx, err)
}
