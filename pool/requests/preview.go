package requests

import (
	"context"

	"weir/models"
	"weir/policies"
	"weir/pool/projects"
)

// PreviewDecision previews the approval of a request, as Get has returned it, with the
// numbers of in. It requires the right to decide the request, which determines the role
// and member.
func (s *Service) PreviewDecision(ctx context.Context, actor policies.Actor, req RequestView, in projects.PreviewInput) (
	v projects.Preview, err error) {
	if err := actor.CheckScope(policies.RequestDecide); err != nil {
		return v, err
	}
	if !s.viewFor(actor, req.RequestView).CanDecide {
		return v, models.Forbidden("You are not an approver of this request.")
	}
	if req.Facts == nil || req.Facts.Project == nil {
		return v, models.NotFound("project")
	}
	return s.projects.PreviewBy(ctx, actor, *req.Facts.Project, previewOf(req, in))
}

// previewOf is the input for the preview of a request.
func previewOf(req RequestView, in projects.PreviewInput) (about projects.PreviewInput) {
	about.Baseline = req.Baseline
	switch a := req.Requested; {
	case a.Quota != nil:
		about.Quota, about.Asked = in.Quota, a.Quota.Quota
		if in.Quota != nil {
			about.Quota = new(in.Quota.Or(a.Quota.Quota))
		}
	case a.Role != nil && in.Role != nil:
		about.Role = &projects.RolePreview{Limit: in.Role.Limit.Or(a.Role.Limit), Permission: a.Role.Permission, Permissions: a.Role.Permissions}
	case a.Limit != nil && in.Role != nil:
		about.Role, about.Asked = &projects.RolePreview{RoleID: a.Limit.RoleID, Limit: in.Role.Limit.Or(a.Limit.Limit)}, a.Limit.Limit
	case a.Join != nil && in.Member != nil:
		about.Member = &projects.MemberPreview{Email: req.RequesterEmail, RoleID: in.Member.RoleID}
	}
	return about
}
