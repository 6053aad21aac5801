package handlers

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"

	"weir/models"
	"weir/policies"
	"weir/pool/projects"
	"weir/pool/quota"
	"weir/pool/requests"
	"weir/web"
)

// previewForm previews the values of a form. It is nil for actors who may not preview.
func (a *App) previewForm(ctx context.Context, project int64, w web.Form, read func(*form) projects.PreviewInput) (
	*web.PreviewView, error) {
	return previewView(w, read, func(in projects.PreviewInput) (projects.Preview, error) {
		return a.Projects.Preview(ctx, actorOf(ctx), project, in)
	})
}

// previewView previews the values that read finds in a form.
func previewView(w web.Form, read func(*form) projects.PreviewInput,
	preview func(projects.PreviewInput) (projects.Preview, error)) (*web.PreviewView, error) {
	f := formFrom(w)
	in := read(f)
	p, err := preview(in)
	switch models.KindOf(err) {
	case models.KindNotFound, models.KindForbidden, models.KindInvalid:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v := &web.PreviewView{Members: p.Members, Headroom: p.Fits, Role: in.Role != nil, Refused: p.Refused, Beyond: p.Beyond}
	if len(f.problems) > 0 {
		v.Refused = models.InvalidFields(f.problems...)
		return v, nil
	}
	for _, r := range p.Rows {
		v.Rows = append(v.Rows, web.PreviewRow{Amount: r.Amount, Before: r.Before, Quota: r.Quota, Remaining: r.Remaining(), Over: r.Over})
	}
	v.Filled = openRows(p.Filled)
	for _, h := range p.OverLimit {
		v.OverLimit = append(v.OverLimit, web.MemberOverLimit{Name: h.Name, Excess: h.Excess})
	}
	return v, nil
}

// formFrom reads a form that is shown.
func formFrom(w web.Form) *form {
	f := &form{values: url.Values{}}
	for name, value := range w.Values {
		f.values.Set(name, value)
	}
	return f
}

// previewNewProject previews the form of a new project.
func (a *App) previewNewProject(ctx context.Context, w web.Form) (*web.PreviewView, error) {
	f := formFrom(w)
	in := f.resources("quota")
	filled, beyond, err := a.Projects.PreviewQuota(ctx, actorOf(ctx), in)
	return previewFilled(filled, beyond, cmp.Or(f.err(), err))
}

// previewFilled shows the amounts of a new project, or why it would be refused.
func previewFilled(filled []projects.Filled, beyond []models.Text, refused error) (*web.PreviewView, error) {
	refusal, err := policies.AsRefusal(refused)
	if err != nil || refusal != nil {
		return &web.PreviewView{Headroom: -1, Refused: refusal}, err
	}
	return &web.PreviewView{Headroom: -1, Filled: filledRows(filled), Beyond: beyond}, nil
}

// openRows are the amounts of a preview, unless all of them were entered.
func openRows(filled []projects.Filled) []web.FilledRow {
	if !slices.ContainsFunc(filled, func(f projects.Filled) bool { return f.Source != quota.Given }) {
		return nil
	}
	return filledRows(filled)
}

func filledRows(filled []projects.Filled) []web.FilledRow {
	return models.Map(filled, func(f projects.Filled) web.FilledRow { return web.FilledRow{Amount: f.Amount, Source: f.Source.Text()} })
}

// Inputs of previews, by form; at is the prefix of the field names.

func rolePreview(role int64, at string) func(*form) projects.PreviewInput {
	return func(f *form) projects.PreviewInput {
		return projects.PreviewInput{Role: &projects.RolePreview{RoleID: role, Limit: f.resources(at + "limit"),
			Permission: f.text(at + "permission"), Permissions: f.permissions(at)}}
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

// projectPreview reads the form of a project.
func projectPreview(f *form) projects.PreviewInput {
	in := quotaPreview("")(f)
	in.Period = &projects.PeriodPreview{EndsAt: f.lastDay("ends_at")}
	return in
}

// requestPreview reads the form of a request, or of its decision; nil for kinds that do
// not affect a quota.
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

// previewRequest is previewForm for the form of a new request.
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

// previewDecision previews the approval of a request with the values of the form.
func (a *App) previewDecision(ctx context.Context, r requests.RequestView, w web.Form) (*web.PreviewView, error) {
	read := requestPreview(r.Kind, roleIn(r.Requested, w))
	if read == nil || r.ProjectID == nil || !r.CanDecide {
		return nil, nil
	}
	return previewView(w, read, func(in projects.PreviewInput) (projects.Preview, error) {
		return a.Requests.PreviewDecision(ctx, actorOf(ctx), r, in)
	})
}

// roleIn is the role of a request, or of the form.
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
