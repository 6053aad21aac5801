package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/web"
)

func (a rest) identityOperations(s section) {
	register(a, s, route{http.MethodDelete, "/users/{id}/identities/{identity}", 204, "delete-identity",
		"Take a provider's way into an account away; its sessions end"}, a.deleteIdentity)
}

// Identity is a person at a provider of sign-in, as whom an account comes in.
type Identity struct {
	ID        int64     `json:"id"`
	Issuer    string    `json:"issuer" doc:"the provider's address"`
	Subject   string    `json:"subject" doc:"what the provider calls the person, for ever"`
	Email     string    `json:"email" doc:"as the provider said it last"`
	Admin     bool      `json:"admin" doc:"whether a group there made the account an administrator"`
	CreatedAt time.Time `json:"created_at"`
	SeenAt    time.Time `json:"seen_at" doc:"the last sign-in"`
}

func identityOf(i models.Identity) Identity {
	return Identity{i.ID, i.Issuer, i.Subject, i.Email, i.Admin, i.CreatedAt.UTC(), i.SeenAt.UTC()}
}

// withIdentities adds the identities and the department of an account to what is shown of it.
func (a rest) withIdentities(ctx context.Context, p Person, err error) (Person, error) {
	if err != nil {
		return Person{}, err
	}
	list, err := a.Accounts.Identities(ctx, actorOf(ctx), p.ID)
	p.Identities = shown(list, identityOf)
	if err != nil || p.DepartmentID == nil {
		return p, err
	}
	names, err := a.Accounts.DepartmentsOf(ctx, actorOf(ctx), models.User{ID: p.ID, DepartmentID: p.DepartmentID})
	p.Department = names[*p.DepartmentID]
	return p, err
}

// ByIdentity names an account's identity.
type ByIdentity struct {
	ByID
	Identity int64 `path:"identity" minimum:"1"`
}

func (a rest) deleteIdentity(ctx context.Context, in *ByIdentity) (*Nothing, error) {
	return nothing(a.Accounts.DeleteIdentity(ctx, actorOf(ctx), in.ID, in.Identity))
}

func (a *App) confirmDeleteIdentityPage(c echo.Context) error {
	ctx := c.Request().Context()
	if err := a.Access.Check(actorOf(ctx), 0, "user", "write"); err != nil {
		return err
	}
	u, err := a.Accounts.User(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return err
	}
	list, err := a.Accounts.Identities(ctx, actorOf(ctx), u.ID)
	if err != nil {
		return err
	}
	for _, i := range list {
		if i.ID == number(c, "identity") {
			return a.render(c, http.StatusOK, web.ConfirmPage(web.ConfirmDeleteIdentity(u, i)))
		}
	}
	return models.NotFound("identity")
}

func (a *App) deleteIdentityPage(c echo.Context) error {
	ctx := c.Request().Context()
	user := number(c, "id")
	if err := a.Accounts.DeleteIdentity(ctx, actorOf(ctx), user, number(c, "identity")); err != nil {
		return err
	}
	return a.done(c, path("people", user), models.Say("The provider does not open this account any more, and its sessions have ended."))
}
