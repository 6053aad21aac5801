package handlers

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool/projects"
	"weir/pool/requests"
	"weir/web"
)

// previewed shows a form again as it was typed, with what would come of it;
// nothing is changed.
func (a *App) previewed(c echo.Context, again func() (templ.Component, error)) error {
	page, err := again()
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

// typed is what stands in the form, to show it again.
func (f *form) typed() *web.Form {
	w := f.asTyped()
	return &w
}

// previewForm is what would come of what stands in a form. It is nil for who
// may not know.
func (a *App) previewForm(ctx context.Context, project int64, w web.Form, read func(*form) projects.PreviewInput) (*web.PreviewView, error) {
	return previewView(w, read, func(in projects.PreviewInput) (projects.Preview, error) {
		return a.Projects.Preview(ctx, actorOf(ctx), project, in)
	})
}

// previewView is what preview says of what is read from a form.
func previewView(w web.Form, read func(*form) projects.PreviewInput, preview func(projects.PreviewInput) (projects.Preview, error)) (*web.PreviewView, error) {
	f := &form{values: url.Values{}}
	for name, value := range w.Values {
		f.values.Set(name, value)
	}
	in := read(f)
	p, err := preview(in)
	switch models.KindOf(err) {
	case models.KindNotFound, models.KindForbidden, models.KindInvalid:
		if err != nil {
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	v := &web.PreviewView{Members: p.Members, Headroom: p.Fits, Role: in.Role != nil, Refused: p.Refused}
	if len(f.problems) > 0 {
		v.Refused = models.InvalidFields(f.problems...)
		return v, nil
	}
	for _, r := range p.Rows {
		v.Rows = append(v.Rows, web.PreviewRow{Amount: r.Amount, Before: r.Before, Quota: r.Quota, Over: r.Over})
	}
	for _, h := range p.OverLimit {
		v.Holders = append(v.Holders, web.PreviewHolder{Name: h.Name, Excess: h.Excess})
	}
	return v, nil
}

// What stands in which form; at is the prefix of its names.

func rolePreview(role int64, at string) func(*form) projects.PreviewInput {
	return func(f *form) projects.PreviewInput {
		return projects.PreviewInput{Role: &projects.RolePreview{RoleID: role, Limit: f.resources(at + "limit")}}
	}
}

func memberPreview(member, role int64) func(*form) projects.PreviewInput {
	return func(f *form) projects.PreviewInput {
		return projects.PreviewInput{Member: &projects.MemberPreview{MemberID: member, Email: f.text("email"), RoleID: role}}
	}
}

func quotaPreview(at string) func(*form) projects.PreviewInput {
	return func(f *form) projects.PreviewInput {
		quota := f.resources(at + "quota")
		return projects.PreviewInput{Quota: &quota}
	}
}

// requestPreview is for the form of a request of a kind, which asks for it or
// decides it; nil where a project's quota says nothing about it.
func requestPreview(kind string, role int64) func(*form) projects.PreviewInput {
	switch kind {
	case models.RequestQuota:
		return quotaPreview("quota.")
	case models.RequestRole:
		return rolePreview(0, "role.")
	case models.RequestLimit:
		if role > 0 {
			return rolePreview(role, "limit.")
		}
	case models.RequestJoin:
		if role > 0 {
			return memberPreview(0, role)
		}
	}
	return nil
}

// previewRequest is previewForm for the form in which something is asked for.
func (a *App) previewRequest(ctx context.Context, project int64, kind string, role int64, w web.Form) (*web.PreviewView, error) {
	read := requestPreview(kind, role)
	if read == nil || project == 0 {
		return nil, nil
	}
	return a.previewForm(ctx, project, w, func(f *form) projects.PreviewInput {
		in := read(f)
		in.Requested = true
		return in
	})
}

// previewDecision is what would come of a request with what stands in the form
// that decides it.
func (a *App) previewDecision(ctx context.Context, r requests.RequestView, w web.Form) (*web.PreviewView, error) {
	read := requestPreview(r.Kind, roleIn(r.Requested, w))
	if read == nil || r.ProjectID == nil || !r.MayDecide {
		return nil, nil
	}
	return previewView(w, read, func(in projects.PreviewInput) (projects.Preview, error) {
		return a.Requests.PreviewDecision(ctx, actorOf(ctx), r.ID, in)
	})
}

// roleIn is the role that a request is about: the one that was asked about,
// or that stands in the form.
func roleIn(asked models.Requested, w web.Form) int64 {
	if asked.Limit != nil {
		return asked.Limit.RoleID
	}
	for _, name := range []string{"limit.role_id", "join.role_id"} {
		if n, err := strconv.ParseInt(w.Values[name], 10, 64); err == nil {
			return n
		}
	}
	return 0
}
