package requests_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/pooltest"
	"weir/pool/requests"
)

// randomPeople is people who ask at random, and decide at random.
type randomPeople struct {
	*example
	t      *testing.T
	rt     *rapid.T
	people []models.User
	ids    []int64
	last   string // the project as it was after the last approval
}

// written is all that decisions could change.
func (w *randomPeople) written() string {
	q := w.Store.Read(w.Ctx)
	p, err1 := q.Project(store.AllProjects, w.Vision.ID)
	roles, err2 := q.Roles(store.AllProjects, w.Vision.ID)
	members, err3 := q.Members(store.AllProjects, w.Vision.ID, store.Page{Limit: 200})
	raw, err4 := json.Marshal([]any{p, roles, members})
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			w.rt.Fatalf("%v", err)
		}
	}
	return string(raw)
}

func (w *randomPeople) somebody() policies.Actor {
	i := rapid.IntRange(0, len(w.people)).Draw(w.rt, "who")
	if i == len(w.people) {
		return w.Root
	}
	return w.Actor(w.t, w.people[i])
}

func (w *randomPeople) anything() models.Requested {
	r := pooltest.DrawResources(w.rt, 0, 250)
	switch rapid.IntRange(0, 3).Draw(w.rt, "kind") {
	case 0:
		return models.Requested{Quota: &models.QuotaSpec{ProjectID: w.Vision.ID, Quota: r.Input()}}
	case 1:
		return models.Requested{Limit: &models.LimitSpec{ProjectID: w.Vision.ID, RoleID: w.Engineer.ID, Limit: r.Input()}}
	case 2:
		return models.Requested{Role: &models.RoleSpec{ProjectID: w.Vision.ID, Name: fmt.Sprint("role ", len(w.ids)), Permission: "member", Limit: r.Input(), AssignToRequester: true}}
	default:
		return models.Requested{Join: &models.JoinSpec{Name: "vision", RoleID: w.Engineer.ID}}
	}
}

// ended takes what people may be told, and fails on anything worse.
func (w *randomPeople) ended(err error) bool {
	switch models.KindOf(err) {
	case models.KindNoCapacity, models.KindConflict, models.KindNotFound, models.KindForbidden, models.KindInvalid:
	default:
		if err != nil {
			w.rt.Fatalf("%v", err)
		}
	}
	return err == nil
}

func (w *randomPeople) asks() {
	v, err := w.Submit(w.Ctx, w.somebody(), requests.RequestInput{Requested: w.anything(), Reason: "because"})
	if w.ended(err) {
		w.ids = append(w.ids, v.ID)
	}
}

func (w *randomPeople) withdraws() {
	if id, ok := pooltest.Pick(w.rt, w.ids); ok {
		w.ended(pooltest.Error(w.Withdraw(w.Ctx, w.somebody(), id, 0)))
	}
}

func (w *randomPeople) decides() {
	id, ok := pooltest.Pick(w.rt, w.ids)
	if !ok {
		return
	}
	before, err := w.Get(w.Ctx, w.Root, id)
	if err != nil {
		w.rt.Fatalf("%v", err)
	}
	in := requests.DecisionInput{Decision: rapid.SampledFrom([]string{"approve", "approve", "refuse"}).Draw(w.rt, "decision"), Reason: "so",
		Confirm: rapid.Bool().Draw(w.rt, "confirm")}
	if rapid.Bool().Draw(w.rt, "adjust") || before.Kind == models.RequestJoin {
		in.Requested = w.anything()
	}
	who := w.somebody()
	after, err := w.Decide(w.Ctx, who, id, in)
	if !w.ended(err) || in.Decision == "refuse" {
		return
	}
	if before.State != models.RequestPending || !(who.User.Admin || who.Grants[w.Vision.ID].Permissions.Contains(models.RequestDecide) && before.RequesterID != who.User.ID) {
		w.rt.Fatalf("%s has approved %+v", who.User.Email, before)
	}
	if w.last == w.written() && after.State == models.RequestApproved && after.Kind != models.RequestLimit {
		w.rt.Fatalf("an approval has changed nothing: %+v", after)
	}
	w.last = w.written()
	w.isGranted(after)
}

// isGranted holds what is there against what was decided.
func (w *randomPeople) isGranted(v requests.RequestView) {
	q := w.Store.Read(w.Ctx)
	switch d := v.Decided; {
	case d.Quota != nil:
		if p, err := q.Project(store.AllProjects, w.Vision.ID); err != nil || p.Quota != d.Quota.Quota.Resources() {
			w.rt.Fatalf("quota %+v, decided %+v, %v", p.Quota, d.Quota.Quota, err)
		}
	case d.Limit != nil:
		if r, err := q.Role(store.AllProjects, w.Vision.ID, w.Engineer.ID); err != nil || r.Limit != d.Limit.Limit.Resources() {
			w.rt.Fatalf("limit %+v, decided %+v, %v", r.Limit, d.Limit.Limit.Resources(), err)
		}
	}
}

// Whatever people ask and decide, in whatever order, the rules hold after
// every step, and nothing changes that nobody approved.
func TestRequestsKeepTheRules(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		h := newExample(t, o)
		pooltest.NoError(t, h.SetJoinRequests(h.Ctx, h.Root, h.Vision.ID, true))
		_, deputy := h.NewMember(t, h.Lead)
		runs, approved := 0, 0
		rapid.Check(t, func(rt *rapid.T) {
			if runs++; runs > 12 && approved > 0 { // as many as there is time for
				return
			}
			w := &randomPeople{example: h, t: t, rt: rt, people: []models.User{h.Boss, deputy, h.Ann, h.Eve}}
			w.last = w.written()
			start := w.last
			rt.Repeat(map[string]func(*rapid.T){
				"ask":      func(rt *rapid.T) { w.rt = rt; w.asks() },
				"withdraw": func(rt *rapid.T) { w.rt = rt; w.withdraws() },
				"decide":   func(rt *rapid.T) { w.rt = rt; w.decides() },
				"": func(rt *rapid.T) {
					w.rt = rt
					if now := w.written(); now != w.last {
						rt.Fatalf("nobody has approved this:\n%s\nbefore:\n%s", now, w.last)
					}
					h.CheckRules(rt, h.Vision.ID)
				},
			})
			if w.last != start {
				approved++
			}
		})
		if approved == 0 {
			t.Error("nothing was ever approved")
		}
	})
}
