package requests_test

import (
	"testing"

	"weir/models"
	"weir/policies"
	"weir/pool/pooltest"
	"weir/pool/projects"
)

// Who decides requests, and may do nothing else, sees what would come of them;
// bound, as the decision is, by what they may grant.
func TestPreviewOfADecision(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		pooltest.NoError(t, h.SetJoinRequests(h.Ctx, h.Root, h.Vision.ID, true))
		judgeRole, err := h.CreateRole(h.Ctx, h.Root, h.Vision.ID, projects.RoleInput{Name: "judge", Permission: models.PermissionCustom, Permissions: []string{"request:decide"}})
		pooltest.NoError(t, err)
		_, judgeUser := h.NewMember(t, judgeRole)
		guest := h.NewRole(t, h.Vision.ID, "guest", "viewer", pooltest.Cores(140))
		judge := h.Actor(t, judgeUser)
		join := h.ask(t, h.Eve, models.Requested{Join: &models.JoinSpec{Name: "vision"}})
		place := func(role models.Role) projects.PreviewInput {
			return projects.PreviewInput{Member: &projects.MemberPreview{Email: h.Ann.Email, RoleID: role.ID}}
		}
		pooltest.WantError(t, pooltest.Error(h.Preview(h.Ctx, judge, h.Vision.ID, place(guest))), models.KindForbidden)
		preview := func(actor policies.Actor, id int64, in projects.PreviewInput) (projects.Preview, error) {
			v, err := h.Get(h.Ctx, actor, id)
			if err != nil {
				return projects.Preview{}, err
			}
			return h.PreviewDecision(h.Ctx, actor, v, in)
		}
		// Eve would join, whatever address is given.
		v, err := preview(judge, join.ID, place(judgeRole))
		if err != nil || v.Refused != nil || v.Members != 1 {
			t.Errorf("%+v, %v", v, err)
		}
		if v, err = preview(judge, join.ID, place(guest)); err != nil || v.Refused == nil || !v.Rows[0].Over {
			t.Errorf("beyond the quota: %+v, %v", v, err)
		}
		if v, err = preview(judge, join.ID, place(h.Engineer)); err != nil || v.Refused == nil || v.Refused.Kind != models.KindForbidden {
			t.Errorf("what the judge cannot grant: %+v, %v", v, err)
		}
		limit := h.ask(t, h.Ann, h.limit(60))
		in := projects.PreviewInput{Role: &projects.RolePreview{RoleID: guest.ID, Limit: pooltest.Cores(60).Input()}}
		if v, err = preview(h.Actor(t, h.Boss), limit.ID, in); err != nil || v.Refused != nil || v.Members != 1 {
			t.Errorf("the role that was asked about: %+v, %v", v, err)
		}
		pooltest.WantError(t, pooltest.Error(preview(h.Actor(t, h.Eve), join.ID, place(guest))), models.KindForbidden)
		pooltest.WantError(t, pooltest.Error(preview(h.Actor(t, h.Ann), join.ID, place(guest))), models.KindNotFound)
		pooltest.WantError(t, pooltest.Error(preview(judge, limit.ID, place(guest))), models.KindInvalid, "exactly one")
		pooltest.NoError(t, pooltest.Error(h.approve(t, judge, join.ID, models.Requested{Join: &models.JoinSpec{RoleID: judgeRole.ID}})))
		pooltest.WantError(t, pooltest.Error(preview(judge, join.ID, place(judgeRole))), models.KindForbidden)
	})
}
