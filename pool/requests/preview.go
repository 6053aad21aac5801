package requests

import (
	"context"

	"weir/models"
	"weir/policies"
	"weir/pool/projects"
)

// PreviewDecision tells who may decide a request what its approval would make
// of the project's quota, with the numbers of in. It takes no other right than
// the decision does; whom and what it is about says the request.
func (s *Service) PreviewDecision(ctx context.Context, actor policies.Actor, id int64, in projects.PreviewInput) (v projects.Preview, err error) {
	req, err := s.Get(ctx, actor, id)
	if err != nil {
		return v, err
	}
	if !req.MayDecide {
		return v, models.Forbidden("You are not an approver of this request.")
	}
	return s.projects.PreviewBy(ctx, actor.Scope(), actor, at(req.ProjectID), previewOf(req, in))
}

// previewOf is the preview of what a request is about.
func previewOf(req RequestView, in projects.PreviewInput) (about projects.PreviewInput) {
	switch a := req.Requested; {
	case a.Quota != nil:
		about.Quota = in.Quota
	case a.Role != nil && in.Role != nil:
		about.Role = &projects.RolePreview{Limit: in.Role.Limit}
	case a.Limit != nil && in.Role != nil:
		about.Role = &projects.RolePreview{RoleID: a.Limit.RoleID, Limit: in.Role.Limit}
	case a.Join != nil && in.Member != nil:
		about.Member = &projects.MemberPreview{Email: req.RequesterEmail, RoleID: in.Member.RoleID}
	}
	return about
}
