package web

import (
	"context"

	"github.com/a-h/templ"

	"weir/models"
)

// PasskeyButton signs in with a passkey.
type PasskeyButton struct {
	Offered bool   // browsers have passkeys at the portal's origin
	Origin  string // the only one at which they have them
	Next    string
	Refused Form
}

// CreatePasskeyView is the step in which the browser creates a passkey.
type CreatePasskeyView struct {
	Form   Form // name, options, ceremony
	Origin string
}

// ConfirmDeletePasskey asks for confirmation before a passkey of the reader is removed.
func ConfirmDeletePasskey(p models.Passkey) ConfirmView {
	return ConfirmView{
		Title: models.Say("Remove the passkey %s?", p.Name),
		Consequences: []models.Text{models.Say("It no longer signs in here. Its device or password manager may still offer it; remove it there, too."),
			models.Say("Your other sessions end.")},
		Button: models.Say("Remove passkey"),
		Action: "/account/passkeys/" + number(p.ID) + "/delete",
		Back:   "/account",
	}
}

// passkeyTexts are what the script of a ceremony says.
func passkeyTexts(ctx context.Context, origin string) templ.Attributes {
	return templ.Attributes{
		"data-t-canceled":    T(ctx, "The browser ended this without a passkey. Try again."),
		"data-t-exists":      T(ctx, "There is a passkey of your account already where you wanted to store this one."),
		"data-t-origin":      T(ctx, "Passkeys can be used only at %s.", origin),
		"data-t-failed":      T(ctx, "The passkey could not be used. Try again."),
		"data-t-unsupported": T(ctx, "This browser has no passkeys."),
	}
}
