package web

import (
	"context"
	"maps"

	"weir/models"
)

// TokensView lists the reader's access tokens.
type TokensView struct {
	Rows    []models.AccessToken
	Form    Form   // name, lifetime
	Secret  string // of the token just made; shown this once
	NewName string // of the token just made
}

// lifetimes are the choices of a token's lifetime.
func lifetimes(ctx context.Context) []Option {
	return []Option{
		{"24h", T(ctx, "1 day")},
		{"168h", T(ctx, "7 days")},
		{"720h", T(ctx, "30 days")},
		{"2160h", T(ctx, "90 days")},
		{"8760h", T(ctx, "1 year")},
	}
}

// withLifetime chooses a lifetime in a form where none was chosen.
func withLifetime(f Form, lifetime string) Form {
	if f.Value("lifetime") != "" {
		return f
	}
	values := maps.Clone(f.Values)
	if values == nil {
		values = map[string]string{}
	}
	values["lifetime"] = lifetime
	f.Values = values
	return f
}

// ConfirmDeleteToken asks for confirmation before an access token is revoked.
func ConfirmDeleteToken(t models.AccessToken) ConfirmView {
	return ConfirmView{
		Title:        models.Say("Revoke token %s?", t.Name),
		Consequences: []models.Text{models.Say("Programs that use this token lose access immediately.")},
		Button:       models.Say("Revoke token"),
		Action:       "/tokens/" + number(t.ID) + "/delete",
		Back:         "/tokens",
	}
}
