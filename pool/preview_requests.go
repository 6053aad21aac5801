package pool

import (
	"context"

	"weir/models"
	"weir/policies"
)

// PreviewDecision tells who may decide a request what its approval would make
// of the project's quota, with the numbers of in. It takes no other right than
// the decision does; whom and what it is about says the request.
func (r *Requests) PreviewDecision(ctx context.Context, actor policies.Actor, id int64, in PreviewInput) (v Preview, err error) {
	req, err := r.Get(ctx, actor, id)
	if err != nil {
		return v, err
	}
	if !req.MayDecide {
		return v, models.Forbidden("Somebody else decides this request.")
	}
	return r.ledger.previewBy(ctx, actor.Scope(), actor, at(req.ProjectID), in.of(req))
}

// of is the preview of what a request is about.
func (in PreviewInput) of(req RequestView) (about PreviewInput) {
	switch a := req.Asked; {
	case a.Quota != nil:
		about.Quota = in.Quota
	case a.Role != nil && in.Role != nil:
		about.Role = &RolePreview{Peak: in.Role.Peak}
	case a.Peak != nil && in.Role != nil:
		about.Role = &RolePreview{RoleID: a.Peak.RoleID, Peak: in.Role.Peak}
	case a.Join != nil && in.Member != nil:
		about.Member = &MemberPreview{Email: req.RequesterEmail, RoleID: in.Member.RoleID}
	}
	return about
}
