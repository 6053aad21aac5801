package handlers

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/pool/projects"
	"weir/web"
)

func (a *App) invitationsRoutes(p *echo.Group) {
	p.GET("/people/new", a.page(a.inviteUsersPage))
	p.GET("/invitations", a.page(a.invitationsPage))
	p.POST("/invitations", a.submitInvitations(policies.Platform, a.inviteUsersPage))
	p.GET("/invitations/:id/revoke", a.page(a.confirmRevokeInvitationPage))
	p.POST("/invitations/:id/revoke", a.submit(nil, a.revokeInvitationPage))
	p.GET("/projects/:id/invitations", a.page(a.invitationsPage))
	p.GET("/projects/:id/invitations/new", a.page(a.inviteMembersPage))
	p.POST("/projects/:id/invitations", func(c echo.Context) error { return a.submitInvitations(number(c, "id"), a.inviteMembersPage)(c) })
}

// inviteUsersPage is the form of invitations to the platform.
func (a *App) inviteUsersPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	_, departments, err := a.Accounts.UserForm(ctx, actorOf(ctx), 0)
	return web.InviteFormPage(web.InviteFormView{Form: submittedOr(c, formOf(0)), Departments: a.departmentOptions(c, departments),
		ByMail: a.Store.Mail}), err
}

// inviteMembersPage is the form of invitations to a project.
func (a *App) inviteMembersPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	form, err := a.Projects.MemberForm(ctx, actorOf(ctx), number(c, "id"), 0)
	if err != nil {
		return nil, err
	}
	v := web.InviteFormView{Form: submittedOr(c, formOf(0)), ProjectID: form.Project.ID, Project: form.Project.Name, Remaining: form.Remaining,
		Lacks: map[int64]models.Permissions{}, ByMail: a.Store.Mail}
	for _, r := range form.Roles {
		v.Roles = append(v.Roles, roleChoice(r))
		v.Lacks[r.ID] = r.Permits().Without(form.Permissions.Has)
	}
	return web.InviteFormPage(v), nil
}

func (a *App) invitationsPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	return a.invitationsWith(optionalNumber(c, "id"), nil)(ctx, c)
}

// invitationsWith is the list of invitations, with those that were just made.
func (a *App) invitationsWith(project int64, made []projects.Invited) pageFunc {
	return func(ctx context.Context, c echo.Context) (templ.Component, error) {
		actor := actorOf(ctx)
		rows, err := a.Invitations.List(ctx, actor, project, pageAfter(c))
		if err != nil {
			return nil, err
		}
		v := web.InvitationsView{ProjectID: project, Rows: rows, ByMail: a.Store.Mail,
			CanInvite: a.Accounts.PlatformPermissions(actor).EditAccounts}
		if project != policies.Platform {
			p, err := a.Projects.Project(ctx, actor, project)
			if err != nil {
				return nil, err
			}
			v.Project, v.CanInvite = p.Name, a.Projects.Permissions(actor, project).EditMembers
		}
		v.Links = a.invitationLinks(c, made)
		v.Next = nextPage(c, rows, func(i models.InvitationView) int64 { return i.ID })
		return web.InvitationsPage(v), nil
	}
}

func (a *App) invitationLinks(c echo.Context, made []projects.Invited) []web.InvitationLink {
	portal := a.portalURL(c.Request())
	return models.Map(made, func(i projects.Invited) web.InvitationLink {
		return web.InvitationLink{Email: i.Email, URL: i.Link.URL(portal), ExpiresAt: i.ExpiresAt}
	})
}

// submitInvitations invites people, and shows the links once.
func (a *App) submitInvitations(project int64, form pageFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		f, err := readForm(c)
		if err != nil {
			return err
		}
		in := projects.InvitationInput{Emails: f.addresses("emails"), RoleID: f.number("role_id"), Admin: f.bool("admin"),
			Auditor:      f.bool("auditor"),
			DepartmentID: f.amount("department_id")}
		var made []projects.Invited
		if err = f.err(); err == nil {
			made, err = a.Invitations.Invite(c.Request().Context(), actorOf(c.Request().Context()), project, in)
		}
		if err != nil {
			return a.refused(c, f, nameAddresses(err, in.Emails), form)
		}
		return a.showPage(c, http.StatusCreated, a.invitationsWith(project, made))
	}
}

// addresses reads email addresses that are separated by spaces, commas or lines.
func (f *form) addresses(name string) []string {
	return strings.FieldsFunc(f.text(name), func(r rune) bool { return strings.ContainsRune(" \t\r\n,;，；", r) })
}

// nameAddresses names the refused ones of email addresses in the field of all.
func nameAddresses(err error, emails []string) error {
	var e *models.Error
	if !errors.As(err, &e) {
		return err
	}
	email := map[string]string{}
	for i, e := range emails {
		email[projects.EmailField(i)] = e
	}
	named := *e
	named.Fields = nil
	var refused []models.Text
	for _, f := range e.Fields {
		if _, is := email[f.Name]; !is {
			named.Fields = append(named.Fields, f)
			continue
		}
		refused = append(refused, models.Say("%s: %s", email[f.Name], f.Reason))
	}
	if len(refused) > 0 {
		named.Fields = append(named.Fields, models.Field{Name: "emails", Reason: models.Join(refused...)})
	}
	return &named
}

func (a *App) confirmRevokeInvitationPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	i, err := a.Invitations.InvitationForm(ctx, actorOf(ctx), number(c, "id"))
	return web.ConfirmPage(web.ConfirmRevokeInvitation(i)), err
}

func (a *App) revokeInvitationPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	i, err := a.Invitations.Revoke(ctx, actorOf(ctx), number(c, "id"))
	return redirect{i.ListPath(), models.Say("The invitation of %s was revoked.", i.Email)}, err
}
