package requests_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/pooltest"
	"weir/pool/projects"
	"weir/pool/requests"
)

// example is the common one, and its people's requests.
type example struct {
	*world
	*pooltest.Example
	*requests.Service
}

func newExample(t *testing.T, o *world) *example {
	t.Helper()
	access, err := policies.NewAccess()
	pooltest.NoError(t, err)
	return &example{world: o, Example: o.NewExample(t), Service: requests.New(o.Store, access, o.World.Service, o.Capacity)}
}

func eachExample(t *testing.T, test func(t *testing.T, h *example)) {
	each(t, func(t *testing.T, o *world) { test(t, newExample(t, o)) })
}

func (h *example) ask(t *testing.T, u models.User, a models.Requested) requests.RequestView {
	t.Helper()
	v, err := h.Submit(h.Ctx, h.Actor(t, u), requests.RequestInput{Requested: a, Reason: "we need it"})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (h *example) approve(t *testing.T, a policies.Actor, id int64, with models.Requested) (requests.RequestView, error) {
	t.Helper()
	return h.Decide(h.Ctx, a, id, requests.DecisionInput{Decision: "approve", Requested: with})
}

func (h *example) quota(n int64) models.Requested {
	q := h.Vision.Quota
	q.GPUCores = n
	return models.Requested{Quota: &models.QuotaSpec{ProjectID: h.Vision.ID, Quota: q.Input()}}
}

func (h *example) limit(n int64) models.Requested {
	return models.Requested{Limit: &models.LimitSpec{ProjectID: h.Vision.ID, RoleID: h.Engineer.ID, Limit: models.Resources{GPUCores: n, CPUMilli: 1000}.Input()}}
}

// Each kind is asked for, approved by whoever may, and done.
func TestEveryKindIsAskedAndDone(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		soon, late := h.Store.Now().Add(24*time.Hour), h.Store.Now().Add(48*time.Hour)
		in := projects.ProjectInput{Name: "vision", Quota: h.Vision.Quota.Input(), EndsAt: &soon}
		if _, err := h.UpdateProject(h.Ctx, h.Root, h.Vision.ID, in); err != nil {
			t.Fatal(err)
		}
		if _, err := h.UpdateMember(h.Ctx, h.Root, h.Vision.ID, h.AnnMember.ID, projects.MemberInput{RoleID: h.Engineer.ID, Until: &soon}); err != nil {
			t.Fatal(err)
		}
		if err := h.SetJoinRequests(h.Ctx, h.Actor(t, h.Boss), h.Vision.ID, true); err != nil {
			t.Fatal(err)
		}
		project := func() models.Project {
			p, err := h.Project(h.Ctx, h.Root, h.Vision.ID)
			pooltest.NoError(t, err)
			return p.Project
		}
		place := func(u models.User, id int64) models.Member {
			m, err := h.Store.Read(h.Ctx).Membership(id, u.ID)
			pooltest.NoError(t, err)
			return m
		}
		for _, c := range []struct {
			by, decider models.User
			asked, with models.Requested
			done        func(requests.RequestView) bool
		}{
			{h.Eve, h.Root.User, models.Requested{Project: &models.ProjectSpec{Name: "speech", Quota: pooltest.Cores(100).Input(), Limit: pooltest.Cores(30).Input()}}, models.Requested{},
				func(v requests.RequestView) bool {
					return h.Actor(t, h.Eve).Grants[*v.ProjectID].Permissions == models.AllPermissions && v.ProjectName == "speech"
				}},
			{h.Ann, h.Root.User, h.quota(300), models.Requested{}, func(requests.RequestView) bool { return project().Quota.GPUCores == 300 }},
			{h.Ann, h.Boss, h.limit(60), models.Requested{}, func(requests.RequestView) bool {
				r, err := h.Role(h.Ctx, h.Root, h.Vision.ID, h.Engineer.ID)
				return err == nil && r.Limit.GPUCores == 60 && r.Name == "engineer"
			}},
			{h.Ann, h.Root.User, models.Requested{Period: &models.PeriodSpec{ProjectID: h.Vision.ID, EndsAt: &late}}, models.Requested{},
				func(requests.RequestView) bool {
					return project().EndsAt.Equal(late) && project().Quota.GPUCores == 300
				}},
			{h.Ann, h.Boss, models.Requested{Deadline: &models.DeadlineSpec{ProjectID: h.Vision.ID}}, models.Requested{},
				func(requests.RequestView) bool {
					m := place(h.Ann, h.Vision.ID)
					return m.Until == nil && m.RoleID == h.Engineer.ID
				}},
			{h.Ann, h.Boss, models.Requested{Role: &models.RoleSpec{ProjectID: h.Vision.ID, Name: "expert", Permission: "member", Limit: pooltest.Cores(70).Input(), AssignToRequester: true}}, models.Requested{},
				func(requests.RequestView) bool { return place(h.Ann, h.Vision.ID).RoleID != h.Engineer.ID }},
			{h.Eve, h.Boss, models.Requested{Join: &models.JoinSpec{Name: "vision"}}, models.Requested{Join: &models.JoinSpec{RoleID: h.Engineer.ID}},
				func(requests.RequestView) bool { return place(h.Eve, h.Vision.ID).RoleID == h.Engineer.ID }},
		} {
			v := h.ask(t, c.by, c.asked)
			if v.State != models.RequestPending || !v.Own || v.CanDecide || !v.CanWithdraw {
				t.Errorf("%s: asked %+v", v.Kind, v)
			}
			got, err := h.approve(t, h.Actor(t, c.decider), v.ID, c.with)
			if err != nil || got.State != models.RequestApproved || got.DeciderID == nil || *got.DeciderID != c.decider.ID || !c.done(got) {
				t.Errorf("%s: %+v, %v", v.Kind, got, err)
			}
			h.CheckRules(t, h.Vision.ID)
		}
	})
}

func TestApprovedWithOtherNumbersIsAdjusted(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		v := h.ask(t, h.Ann, h.limit(90))
		got, err := h.approve(t, h.Actor(t, h.Boss), v.ID, h.limit(70))
		if err != nil || got.State != models.RequestAdjusted || got.Decided.Limit.Limit.Resources().GPUCores != 70 || got.Requested.Limit.Limit.Resources().GPUCores != 90 {
			t.Errorf("%+v, %v", got, err)
		}
		// Another role than was asked about is not to be had by a decision.
		v = h.ask(t, h.Ann, h.limit(90))
		other := h.limit(80)
		other.Limit.RoleID, other.Limit.ProjectID = h.Lead.ID, 99
		_, err = h.approve(t, h.Actor(t, h.Boss), v.ID, other)
		lead, err2 := h.Role(h.Ctx, h.Root, h.Vision.ID, h.Lead.ID)
		if err != nil || err2 != nil || lead.Limit.GPUCores != 20 {
			t.Errorf("the lead's limit is %d, %v, %v", lead.Limit.GPUCores, err, err2)
		}
	})
}

func TestRefusedAndWithdrawn(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		v := h.ask(t, h.Ann, h.limit(90))
		_, err := h.Decide(h.Ctx, h.Actor(t, h.Boss), v.ID, requests.DecisionInput{Decision: "refuse"})
		pooltest.WantError(t, err, models.KindInvalid, "reason")
		got, err := h.Decide(h.Ctx, h.Actor(t, h.Boss), v.ID, requests.DecisionInput{Decision: "refuse", Reason: "too much"})
		if err != nil || got.State != models.RequestRefused || got.DecisionReason != "too much" {
			t.Errorf("%+v, %v", got, err)
		}
		_, err = h.approve(t, h.Root, v.ID, models.Requested{})
		pooltest.WantError(t, err, models.KindConflict, h.Boss.Name, "refused")
		_, err = h.Withdraw(h.Ctx, h.Actor(t, h.Ann), v.ID, 0)
		pooltest.WantError(t, err, models.KindConflict, h.Boss.Name)

		v = h.ask(t, h.Ann, h.limit(80))
		_, err = h.Withdraw(h.Ctx, h.Actor(t, h.Boss), v.ID, 0)
		pooltest.WantError(t, err, models.KindForbidden)
		if got, err = h.Withdraw(h.Ctx, h.Actor(t, h.Ann), v.ID, v.Version); err != nil || got.State != models.RequestWithdrawn {
			t.Errorf("%+v, %v", got, err)
		}
		_, err = h.approve(t, h.Actor(t, h.Boss), v.ID, models.Requested{})
		pooltest.WantError(t, err, models.KindConflict, "withdrawn")
	})
}

// An approval that would break rule 1 says what is left, and changes nothing.
func TestApprovalBeyondTheQuota(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		h.NewMember(t, h.Engineer)
		h.NewMember(t, h.Engineer)
		v := h.ask(t, h.Ann, h.limit(70))
		_, err := h.approve(t, h.Actor(t, h.Boss), v.ID, models.Requested{})
		pooltest.WantError(t, err, models.KindNoCapacity, "limit.limit.gpu_cores", "60 more", "30 of the project's quota of 200 remaining")
		if got, err := h.Get(h.Ctx, h.Actor(t, h.Boss), v.ID); err != nil || got.State != models.RequestPending || got.Version != 1 || got.Facts.Remaining().GPUCores != 30 || got.Facts.Members != 3 {
			t.Errorf("%+v, %v", got, err)
		}
		if got, err := h.approve(t, h.Actor(t, h.Boss), v.ID, h.limit(60)); err != nil || got.State != models.RequestAdjusted {
			t.Errorf("%+v, %v", got, err)
		}
		h.CheckRules(t, h.Vision.ID)
	})
}

func TestWhoMayDecide(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		quota, limit := h.ask(t, h.Ann, h.quota(300)), h.ask(t, h.Boss, h.limit(60))
		_, err := h.approve(t, h.Actor(t, h.Boss), quota.ID, models.Requested{})
		pooltest.WantError(t, err, models.KindNotFound)
		_, err = h.approve(t, h.Actor(t, h.Ann), quota.ID, models.Requested{})
		pooltest.WantError(t, err, models.KindForbidden, "You are not an approver of this request.")
		_, err = h.approve(t, h.Actor(t, h.Boss), limit.ID, models.Requested{})
		pooltest.WantError(t, err, models.KindForbidden, "own request")
		for _, id := range []int64{quota.ID, limit.ID, 999} {
			_, err = h.Get(h.Ctx, h.Actor(t, h.Eve), id)
			pooltest.WantError(t, err, models.KindNotFound)
			_, err = h.approve(t, h.Actor(t, h.Eve), id, models.Requested{})
			pooltest.WantError(t, err, models.KindNotFound)
			_, err = h.Withdraw(h.Ctx, h.Actor(t, h.Eve), id, 0)
			pooltest.WantError(t, err, models.KindNotFound)
		}
		if seen, err := h.Get(h.Ctx, h.Actor(t, h.Ann), quota.ID); err != nil || seen.Facts != nil {
			t.Errorf("who asked sees %+v, %v", seen.Facts, err)
		}
		// An administrator may decide their own, and the audit says so.
		own, err := h.Submit(h.Ctx, h.Root, requests.RequestInput{Requested: h.quota(250), Reason: "mine"})
		pooltest.NoError(t, err)
		_, err = h.approve(t, h.Root, own.ID, models.Requested{})
		pooltest.NoError(t, err)
		entries, err := h.Store.Read(h.Ctx).Audit(store.AuditFilter{Object: "request", Action: "approve"}, store.Page{Limit: 1})
		if err != nil || len(entries) != 1 || !strings.Contains(entries[0].After, `"own":true`) {
			t.Errorf("%+v, %v", entries, err)
		}
	})
}

func TestInboxes(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		ids := map[string]int64{}
		for name, a := range map[string]models.Requested{"quota": h.quota(300), "limit": h.limit(60)} {
			ids[name] = h.ask(t, h.Ann, a).ID
		}
		ids["own"] = h.ask(t, h.Boss, h.limit(61)).ID
		inbox := func(a policies.Actor, settled bool, page store.Page) (found []int64) {
			list, err := h.Inbox(h.Ctx, a, settled, page)
			pooltest.NoError(t, err)
			for _, v := range list {
				found = append(found, v.ID)
			}
			return found
		}
		if got := inbox(h.Root, false, store.Page{}); len(got) != 3 || !slices.IsSorted(got) {
			t.Errorf("an administrator finds %v", got)
		}
		if got := inbox(h.Root, false, store.Page{Limit: 2, After: 2}); !slices.Equal(got, []int64{3}) {
			t.Errorf("the second page is %v", got)
		}
		if got := inbox(h.Actor(t, h.Boss), false, store.Page{}); !slices.Equal(got, []int64{ids["limit"]}) {
			t.Errorf("a manager finds %v of %v", got, ids)
		}
		if n, err := h.Waiting(h.Ctx, h.Actor(t, h.Boss)); n != 1 || err != nil {
			t.Errorf("%d wait, %v", n, err)
		}
		if got := inbox(h.Actor(t, h.Ann), false, store.Page{}); got != nil {
			t.Errorf("a member finds %v", got)
		}
		_, err := h.approve(t, h.Actor(t, h.Boss), ids["limit"], models.Requested{})
		pooltest.NoError(t, err)
		if got := inbox(h.Actor(t, h.Boss), true, store.Page{}); !slices.Equal(got, []int64{ids["limit"]}) {
			t.Errorf("settled: %v", got)
		}
		mine, err := h.Mine(h.Ctx, h.Actor(t, h.Ann), store.Page{})
		if err != nil || len(mine) != 2 || mine[0].ID < mine[1].ID {
			t.Errorf("%+v, %v", mine, err)
		}
		_, err = h.Mine(h.Ctx, policies.Actor{}, store.Page{})
		pooltest.WantError(t, err, models.KindUnauthenticated)
	})
}

func TestBadRequests(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		past := h.Store.Now().Add(-time.Hour)
		other := h.NewProject(t, "secret", pooltest.Cores(10))
		foreign := h.NewRole(t, other.ID, "x", "member", pooltest.Cores(5))
		for name, c := range map[string]struct {
			asked models.Requested
			kind  models.Kind
			says  string
		}{
			"nothing":            {models.Requested{}, models.KindInvalid, "kind"},
			"two things":         {models.Requested{Quota: h.quota(300).Quota, Limit: h.limit(60).Limit}, models.KindInvalid, "kind"},
			"no more":            {h.quota(200), models.KindInvalid, "quota.quota.gpu_cores"},
			"negative":           {h.quota(-1), models.KindInvalid, "quota.quota.gpu_cores"},
			"no larger":          {h.limit(50), models.KindInvalid, "limit.limit.gpu_cores"},
			"foreign role":       {models.Requested{Limit: &models.LimitSpec{ProjectID: h.Vision.ID, RoleID: foreign.ID, Limit: pooltest.Cores(9).Input()}}, models.KindInvalid, "limit.role_id"},
			"foreign quota":      {models.Requested{Quota: &models.QuotaSpec{ProjectID: other.ID, Quota: pooltest.Cores(900).Input()}}, models.KindNotFound, "project"},
			"foreign period":     {models.Requested{Period: &models.PeriodSpec{ProjectID: other.ID}}, models.KindNotFound, "project"},
			"foreign deadline":   {models.Requested{Deadline: &models.DeadlineSpec{ProjectID: other.ID}}, models.KindNotFound, "project"},
			"no end to move":     {models.Requested{Period: &models.PeriodSpec{ProjectID: h.Vision.ID}}, models.KindInvalid, "period.ends_at"},
			"end in the past":    {models.Requested{Deadline: &models.DeadlineSpec{ProjectID: h.Vision.ID, Until: &past}}, models.KindInvalid, "deadline.until"},
			"nameless":           {models.Requested{Project: &models.ProjectSpec{Quota: pooltest.Cores(1).Input()}}, models.KindInvalid, "project.name"},
			"limit above quota":  {models.Requested{Project: &models.ProjectSpec{Name: "n", Quota: pooltest.Cores(1).Input(), Limit: pooltest.Cores(2).Input()}}, models.KindNoCapacity, "project.limit.gpu_cores"},
			"no permission":      {models.Requested{Role: &models.RoleSpec{ProjectID: h.Vision.ID, Name: "n"}}, models.KindInvalid, "role.permission"},
			"closed project":     {models.Requested{Join: &models.JoinSpec{Name: "secret"}}, models.KindInvalid, "join.name"},
			"no project":         {models.Requested{Join: &models.JoinSpec{Name: "nothing"}}, models.KindInvalid, "join.name"},
			"closed by its link": {models.Requested{Join: &models.JoinSpec{ProjectID: other.ID}}, models.KindNotFound, "project"},
		} {
			_, err := h.Submit(h.Ctx, h.Actor(t, h.Ann), requests.RequestInput{Requested: c.asked, Reason: "because"})
			t.Log(name)
			pooltest.WantError(t, err, c.kind, c.says)
		}
		_, err := h.Submit(h.Ctx, h.Actor(t, h.Ann), requests.RequestInput{Requested: h.quota(-1), Reason: " "})
		pooltest.WantError(t, err, models.KindInvalid, "reason", "quota.quota.gpu_cores")
		_, err = h.Submit(h.Ctx, policies.Actor{}, requests.RequestInput{Requested: h.quota(300), Reason: "x"})
		pooltest.WantError(t, err, models.KindUnauthenticated)
	})
}

// Whoever may be asked to join is found by the exact name, and nothing else
// of it is told.
func TestJoiningTellsNoMoreThanTheName(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		eve := h.Actor(t, h.Eve)
		_, err := h.Joinable(h.Ctx, eve, h.Vision.ID)
		pooltest.WantError(t, err, models.KindNotFound)
		pooltest.WantError(t, h.SetJoinRequests(h.Ctx, h.Actor(t, h.Ann), h.Vision.ID, true), models.KindForbidden)
		pooltest.WantError(t, h.SetJoinRequests(h.Ctx, eve, h.Vision.ID, true), models.KindNotFound)
		pooltest.NoError(t, h.SetJoinRequests(h.Ctx, h.Actor(t, h.Boss), h.Vision.ID, true))
		if p, err := h.Joinable(h.Ctx, eve, h.Vision.ID); err != nil || p.Name != "vision" || p.Quota != (models.Resources{}) {
			t.Errorf("%+v, %v", p, err)
		}
		v, err := h.Submit(h.Ctx, eve, requests.RequestInput{Requested: models.Requested{Join: &models.JoinSpec{ProjectID: h.Vision.ID, RoleID: h.Lead.ID}}, Reason: "please"})
		if err != nil || v.Requested.Join.RoleID != 0 || v.Facts != nil {
			t.Errorf("%+v, %v", v, err)
		}
		_, err = h.approve(t, h.Actor(t, h.Boss), v.ID, models.Requested{})
		pooltest.WantError(t, err, models.KindInvalid, "join.role_id")
		_, err = h.Submit(h.Ctx, h.Actor(t, h.Ann), requests.RequestInput{Requested: models.Requested{Join: &models.JoinSpec{Name: "vision"}}, Reason: "again"})
		pooltest.WantError(t, err, models.KindInvalid, "join.name", "already")
	})
}

// Of one person at most 20 requests wait, whatever comes at once.
func TestPendingRequestsAreBounded(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		ann := h.Actor(t, h.Ann)
		var kinds storetest.ErrorCounts
		storetest.Concurrently(30, func(i int) {
			_, err := h.Submit(h.Ctx, ann, requests.RequestInput{Requested: h.quota(int64(201 + i)), Reason: "more"})
			kinds.Add(err)
		})
		kinds.Want(t, 20, models.KindNoCapacity, 10)
		mine, err := h.Mine(h.Ctx, ann, store.Page{Limit: 100})
		if err != nil || len(mine) != 20 {
			t.Errorf("%d wait, %v", len(mine), err)
		}
	})
}

// Two decide the same request at the same moment, two hundred times: one of
// them does, and the other is told who.
func TestTwoDecidersOneDecision(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		_, other := h.NewMember(t, h.Lead)
		names := []string{h.Boss.Name, other.Name}
		deciders := []policies.Actor{h.Actor(t, h.Boss), h.Actor(t, other)}
		for round := range 200 {
			v := h.ask(t, h.Ann, h.limit(int64(51+round%2)))
			errs := make([]error, 2)
			storetest.Concurrently(2, func(i int) {
				in := requests.DecisionInput{Decision: "approve", Requested: h.limit(50)}
				if (round+i)%2 == 0 {
					in = requests.DecisionInput{Decision: "refuse", Reason: fmt.Sprint("no, ", i)}
				}
				_, errs[i] = h.Decide(h.Ctx, deciders[i], v.ID, in)
			})
			winner := slices.Index(errs, nil)
			if winner < 0 || errs[1-winner] == nil {
				t.Fatalf("round %d: %v", round, errs)
			}
			pooltest.WantError(t, errs[1-winner], models.KindConflict, names[winner])
			got, err := h.Get(h.Ctx, h.Root, v.ID)
			if err != nil || *got.DeciderID != deciders[winner].User.ID || got.Version != 2 {
				t.Fatalf("round %d: %+v, %v", round, got, err)
			}
		}
		entries, err := h.Store.Read(h.Ctx).Audit(store.AuditFilter{Object: "role", Action: "update"}, store.Page{Limit: 200})
		approved, err2 := h.Store.Read(h.Ctx).Audit(store.AuditFilter{Object: "request", Action: "approve"}, store.Page{Limit: 200})
		if err != nil || err2 != nil || len(entries) != len(approved) || len(approved) == 0 || len(approved) == 200 {
			t.Errorf("%d changes of the role by %d approvals, %v, %v", len(entries), len(approved), err, err2)
		}
	})
}

// A new project has no row yet that both could wait for: it is made once all
// the same.
func TestTwoDecidersOneProject(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		deciders := []policies.Actor{h.Root, {User: storetest.User(t, h.Store, "root2@example.org", true)}}
		for round := range 40 {
			asked := models.Requested{Project: &models.ProjectSpec{Name: fmt.Sprint("p", round), Quota: pooltest.Cores(1).Input()}}
			v := h.ask(t, h.Eve, asked)
			other := models.Requested{Project: &models.ProjectSpec{Name: fmt.Sprint("q", round), Quota: pooltest.Cores(1).Input()}}
			errs := make([]error, 2)
			storetest.Concurrently(2, func(i int) {
				_, errs[i] = h.approve(t, deciders[i], v.ID, []models.Requested{asked, other}[i])
			})
			winner := slices.Index(errs, nil)
			if winner < 0 {
				t.Fatalf("round %d: %v", round, errs)
			}
			pooltest.WantError(t, errs[1-winner], models.KindConflict, deciders[winner].User.Name)
		}
		if all, err := h.ListProjects(h.Ctx, h.Root, projects.ProjectQuery{}, store.Page{Limit: 200}); err != nil || len(all) != 41 {
			t.Errorf("%d projects, %v", len(all), err)
		}
	})
}
