package web

import (
	"context"
	"net/http"

	"weir/models"
)

// ErrorView is a request that could not be served.
type ErrorView struct {
	Status  int
	Err     models.Error
	Request string // id that the log knows it by, or empty
}

// ConfirmView asks before something is lost. It works without scripts: the
// page is what a delete link leads to.
type ConfirmView struct {
	Title        models.Text
	Consequences []models.Text
	Button       models.Text
	Action       string // where the form posts to
	Back         string
	Version      int64 // posted as version when not 0
	Form         Form  // what was refused, when it comes back
}

// WorkspaceGoneView is shown at a workspace's own address when nothing
// answers there.
type WorkspaceGoneView struct {
	State  models.WorkspaceState // empty: there is no such workspace, or not for this reader
	Name   string                // shown only to those who may see it
	Portal string                // origin of the portal, such as https://weir.example.org
	Link   string                // path in the portal, such as /workspaces/5
}

// ConfirmDeleteRole asks before a role is deleted.
func ConfirmDeleteRole(project models.Project, role models.Role) ConfirmView {
	base := projectPath(project.ID)
	return ConfirmView{
		Title:        models.Say("Delete the role %s?", role.Name),
		Consequences: []models.Text{models.Say("Nobody can be given this role afterwards. A role that still has members cannot be deleted.")},
		Button:       models.Say("Delete role"),
		Action:       base + "/roles/" + id(role.ID) + "/delete",
		Back:         base, Version: role.Version,
	}
}

// ConfirmRemoveMember asks before a member is removed.
func ConfirmRemoveMember(project models.Project, member models.MemberView) ConfirmView {
	base := projectPath(project.ID)
	return ConfirmView{
		Title: models.Say("Remove %s from %s?", member.UserName, project.Name),
		Consequences: []models.Text{
			models.Say("Their workspaces in this project are stopped and give back what they hold."),
			models.Say("Their directory and its files stay."),
		},
		Button: models.Say("Remove member"),
		Action: base + "/members/" + id(member.ID) + "/delete",
		Back:   base, Version: member.Version,
	}
}

// ConfirmDeleteEnvironment asks before a catalogue entry is deleted.
func ConfirmDeleteEnvironment(e models.Environment) ConfirmView {
	return ConfirmView{
		Title:        models.Say("Delete the environment %s?", e.Name),
		Consequences: []models.Text{models.Say("Nobody can launch it afterwards. Workspaces that already run are not touched.")},
		Button:       models.Say("Delete environment"),
		Action:       "/environments/" + id(e.ID) + "/delete",
		Back:         "/environments", Version: e.Version,
	}
}

// ConfirmDeleteToken asks before an access token is revoked.
func ConfirmDeleteToken(t models.AccessToken) ConfirmView {
	return ConfirmView{
		Title:        models.Say("Revoke the token %s?", t.Name),
		Consequences: []models.Text{models.Say("Programs that use it are refused from then on.")},
		Button:       models.Say("Revoke token"),
		Action:       "/tokens/" + id(t.ID) + "/delete",
		Back:         "/tokens",
	}
}

// ConfirmDeleteIdentity asks before a provider's way into an account is taken
// away.
func ConfirmDeleteIdentity(u models.User, i models.Identity) ConfirmView {
	v := ConfirmView{
		Title:        models.Say("Take the sign-in by %s from %s?", i.Issuer, u.Email),
		Consequences: []models.Text{models.Say("Sessions of this person end everywhere.")},
		Button:       models.Say("Remove"),
		Action:       personPath(u.ID) + "/identities/" + id(i.ID) + "/delete",
		Back:         personPath(u.ID),
	}
	if u.PasswordHash == "" {
		v.Consequences = append(v.Consequences, models.Say("Then nothing opens this account until it gets a password."))
	}
	return v
}

func (v ErrorView) title(ctx context.Context) string {
	switch {
	case v.Status == http.StatusUnauthorized:
		return T(ctx, "Please sign in")
	case v.Status == http.StatusForbidden:
		return T(ctx, "You may not do this")
	case v.Status == http.StatusNotFound:
		return T(ctx, "Nothing is here")
	case v.Status == http.StatusConflict || v.Status == http.StatusPreconditionFailed:
		return T(ctx, "It has changed meanwhile")
	case v.Status == http.StatusTooManyRequests:
		return T(ctx, "Too many attempts")
	case v.Status == http.StatusServiceUnavailable:
		return T(ctx, "Not available now")
	case v.Status >= 500:
		return T(ctx, "Something went wrong here")
	}
	return T(ctx, "This cannot be done")
}

// advice says what the reader can do about it.
func (v ErrorView) advice(ctx context.Context) string {
	switch {
	case v.Status == http.StatusUnauthorized:
		return T(ctx, "Your session has ended, or there was none.")
	case v.Status == http.StatusForbidden:
		return T(ctx, "A manager of the project or an administrator can give you the right.")
	case v.Status == http.StatusNotFound:
		return T(ctx, "The address is wrong, the thing was deleted, or it is not yours to see.")
	case v.Status == http.StatusConflict || v.Status == http.StatusPreconditionFailed:
		return T(ctx, "Nothing was changed. Go back, load the page again and repeat what you wanted to change.")
	case v.Status == http.StatusTooManyRequests || v.Status == http.StatusServiceUnavailable:
		return T(ctx, "Try again in a while.")
	case v.Status >= 500:
		return T(ctx, "It is not your fault. Try again; if it stays, tell an administrator the number of the request.")
	}
	return T(ctx, "Go back and correct the input.")
}

func (v WorkspaceGoneView) title(ctx context.Context) string {
	switch {
	case v.State == "":
		return T(ctx, "There is no workspace here")
	case v.State.Ended() || v.State == models.StateStopping:
		return T(ctx, "The workspace %s has stopped", v.Name)
	case v.State == models.StateRunning:
		return T(ctx, "The workspace %s does not answer", v.Name)
	}
	return T(ctx, "The workspace %s is not ready yet", v.Name)
}

func (v WorkspaceGoneView) advice(ctx context.Context) string {
	switch {
	case v.State == "":
		return T(ctx, "It was never here, or it must be opened from Weir first.")
	case v.State.Ended() || v.State == models.StateStopping:
		return T(ctx, "Its files are kept. It can be launched again from Weir.")
	}
	return T(ctx, "Its page in Weir says how far it is and opens it.")
}

func (v WorkspaceGoneView) link() string {
	if v.Link == "" {
		return "/"
	}
	return v.Link
}
