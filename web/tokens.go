package web

import (
	"context"
	"strings"

	"weir/models"
)

// TokensView lists the reader's access tokens.
type TokensView struct {
	Rows    []models.AccessToken
	Form    Form   // name, lifetime
	Secret  string // of the token just made; shown this once
	NewName string // of the token just made

	Account *models.MemberView // the service account whose tokens they are; nil: the reader's own
}

// ServiceTokensPath is the page of a service account's tokens.
func ServiceTokensPath(project, member int64) string {
	return projectPath(project) + "/members/" + number(member) + "/tokens"
}

func (v TokensView) path() string {
	if v.Account == nil {
		return "/tokens"
	}
	return ServiceTokensPath(v.Account.ProjectID, v.Account.ID)
}

func (v TokensView) title(ctx context.Context) string {
	if v.Account == nil {
		return T(ctx, "Access tokens")
	}
	return T(ctx, "Access tokens of %s", v.Account.UserName)
}

func (v TokensView) subtitle(ctx context.Context) string {
	if v.Account == nil {
		return T(ctx, "Programs can use a token to act with your permissions until it expires.")
	}
	return T(ctx, "Programs can use a token to act with the role %s of this service account until it expires.", v.Account.RoleName)
}

// scopes are those that a token can have.
func (v TokensView) scopes() []models.TokenScope {
	if v.Account == nil {
		return models.TokenScopes
	}
	return []models.TokenScope{models.ScopeRead, models.ScopeLaunch, models.ScopeProject}
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

// scopeField is the name of the checkbox of a scope.
func scopeField(s models.TokenScope) string { return "scope_" + string(s) }

func scopeNames(scopes []models.TokenScope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// NewTokenForm is an empty form for a token.
func NewTokenForm() Form {
	return Form{Values: map[string]string{"lifetime": "720h", scopeField(models.ScopeRead): "1"}}
}

// ConfirmDeleteToken asks for confirmation before an access token is revoked.
// tokens is the page that lists it.
func ConfirmDeleteToken(t models.AccessToken, tokens string) ConfirmView {
	return ConfirmView{
		Title:        models.Say("Revoke token %s?", t.Name),
		Consequences: []models.Text{models.Say("Programs that use this token lose access immediately.")},
		Button:       models.Say("Revoke token"),
		Action:       tokens + "/" + number(t.ID) + "/delete",
		Back:         tokens,
	}
}
