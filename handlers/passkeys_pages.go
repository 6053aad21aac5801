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

func (a *App) passkeyRoutes(p *echo.Group) {
	p.GET("/account/passkeys/new", a.page(a.proofPage(web.NewPasskeyPage)))
	p.POST("/account/passkeys/new", a.beginPasskeyPage)
	p.POST("/account/passkeys", a.addPasskeyPage)
	p.GET("/account/passkeys/:id/rename", a.page(a.renamePasskeyForm))
	p.POST("/account/passkeys/:id/rename", a.submit(a.renamePasskeyForm, a.renamePasskeyPage))
	p.GET("/account/passkeys/:id/delete", a.page(a.confirmDeletePasskeyPage))
	p.POST("/account/passkeys/:id/delete", a.submit(nil, a.deletePasskeyPage))
}

// beginPasskeyPage shows the step in which the browser creates the passkey.
func (a *App) beginPasskeyPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	ceremony, err := a.Accounts.BeginPasskey(ctx, actorOf(ctx), f.proof())
	if err != nil {
		return a.refused(c, f, err, a.proofPage(web.NewPasskeyPage))
	}
	step := formOf(0)
	step.Values["options"], step.Values["ceremony"] = string(ceremony.Options), ceremony.Ceremony
	return a.render(c, http.StatusOK, a.passkeyStep(step))
}

// createPasskeyPage is that step again, after what was sent was refused.
func (a *App) createPasskeyPage(_ context.Context, c echo.Context) (templ.Component, error) {
	return a.passkeyStep(submittedOr(c, formOf(0))), nil
}

func (a *App) passkeyStep(f web.Form) templ.Component {
	return web.CreatePasskeyPage(web.CreatePasskeyView{Form: f, Origin: a.passkeyOrigin()})
}

// passkeyOrigin is the origin at which browsers have passkeys of the portal; empty: none.
func (a *App) passkeyOrigin() string {
	if a.Accounts.RelyingParty == nil {
		return ""
	}
	return a.Accounts.RelyingParty.Origin
}

func (a *App) addPasskeyPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	p, err := a.Accounts.AddPasskey(ctx, actorOf(ctx), policies.NewPasskey{Name: f.text("name"), Ceremony: f.text("ceremony"),
		Credential: []byte(f.text("credential"))})
	if err != nil {
		return a.refused(c, f, err, a.createPasskeyPage)
	}
	return a.redirectWithFlash(c, "/account", models.Say("The passkey %s was added.", p.Name))
}

// passkey is the one in the address, of the reader.
func (a *App) passkey(ctx context.Context, c echo.Context) (models.Passkey, error) {
	list, err := a.Accounts.Passkeys(ctx, actorOf(ctx), actorOf(ctx).User.ID)
	return find(list, err, models.NotFound("passkey"), func(p models.Passkey) bool { return p.ID == number(c, "id") })
}

func (a *App) renamePasskeyForm(ctx context.Context, c echo.Context) (templ.Component, error) {
	p, err := a.passkey(ctx, c)
	return renamePage(c, p.Name, path("account/passkeys", p.ID)+"/rename", "/account"), err
}

func (a *App) renamePasskeyPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	p, err := a.Accounts.RenamePasskey(ctx, actorOf(ctx), number(c, "id"), policies.PasskeyName{Name: f.text("name")})
	return redirect{"/account", models.Say("The passkey is called %s now.", p.Name)}, err
}

func (a *App) confirmDeletePasskeyPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	p, err := a.passkey(ctx, c)
	return confirmPage(c, web.ConfirmDeletePasskey(p)), err
}

func (a *App) deletePasskeyPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	err := a.Accounts.DeletePasskey(ctx, actorOf(ctx), number(c, "id"))
	return redirect{"/account", models.Say("The passkey was removed. Your other sessions were ended.")}, a.continueSession(ctx, err)
}

// passkeyButton signs in with a passkey, and leads to a page.
func (a *App) passkeyButton(next string) web.PasskeyButton {
	origin := a.passkeyOrigin()
	return web.PasskeyButton{Offered: origin != "", Origin: origin, Next: next}
}
