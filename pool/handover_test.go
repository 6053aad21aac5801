package pool_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/modelstest"
	"weir/policies"
	"weir/pool"
)

// holder is what decides over a member's writing now.
func (h *hall) holder(t *testing.T, m models.Member) models.Holder {
	t.Helper()
	v, err := h.store.Read(h.ctx).Holder(h.project.ID, m.ID)
	noError(t, err)
	return v
}

func (h *hall) wantHeir(t *testing.T, from models.Member, heir int64) {
	t.Helper()
	v, err := h.Leaver(h.ctx, h.root, h.project.ID, from.ID)
	noError(t, err)
	if (v.HeirID == nil) != (heir == 0) || heir != 0 && *v.HeirID != heir {
		t.Errorf("the heir of %d is %v, want %d", from.ID, v.HeirID, heir)
	}
}

// actions are the audit's words for what was done to a member, oldest first.
func (h *hall) actions(t *testing.T, m models.Member) (list []string) {
	t.Helper()
	entries, err := h.store.Read(h.ctx).Audit(models.AuditFilter{}, models.Page{Limit: 200})
	noError(t, err)
	for _, e := range slices.Backward(entries) {
		if e.Object == "member" && e.ObjectID == m.ID {
			list = append(list, e.Action)
		}
	}
	return list
}

// A leaver's directory is handed to a member, who has it until either of the
// two comes or goes.
func TestHandOver(t *testing.T) {
	eachHall(t, func(t *testing.T, h *hall) {
		boss, to := h.actor(t, h.boss), func(m models.Member) pool.HandoverInput { return pool.HandoverInput{ToMemberID: m.ID} }
		heir, bob := h.member(t, h.engineer)
		give := func(in pool.HandoverInput) error {
			_, err := h.HandOver(h.ctx, boss, h.project.ID, h.annPlace.ID, in)
			return err
		}
		want(t, give(to(heir)), models.KindConflict, "member still")
		noError(t, h.RemoveMember(h.ctx, boss, h.project.ID, h.annPlace.ID))
		if got := h.holder(t, h.annPlace); !got.Left {
			t.Errorf("who left: %+v", got)
		}
		want(t, give(to(h.annPlace)), models.KindInvalid, "to_member_id")
		want(t, give(pool.HandoverInput{ToMemberID: 999}), models.KindInvalid, "to_member_id")
		noError(t, give(to(heir)))
		h.wantHeir(t, h.annPlace, heir.ID)
		if got := h.holder(t, heir); !slices.Equal(got.Inherits, []int64{h.annPlace.ID}) || got.Left || got.Ended {
			t.Errorf("the heir: %+v", got)
		}
		want(t, give(to(h.bossPlace)), models.KindConflict, "Take it back first")
		list, err := h.store.Read(h.ctx).Notices(bob.ID, models.Page{})
		noError(t, err)
		if text := fmt.Sprintf("The directory of %s in vision is handed to you: /notebook/%d/%d. Workspaces that you start from now on can write it.", h.ann.Name, h.project.ID, h.annPlace.ID); list[0].Text.String() != text {
			t.Errorf("the heir is told %s", list[0].Text)
		}

		noError(t, h.TakeBack(h.ctx, boss, h.project.ID, h.annPlace.ID))
		want(t, h.TakeBack(h.ctx, boss, h.project.ID, h.annPlace.ID), models.KindNotFound)
		h.wantHeir(t, h.annPlace, 0)
		noError(t, give(to(heir)))
		noError(t, h.RemoveMember(h.ctx, boss, h.project.ID, heir.ID)) // the heir goes
		h.wantHeir(t, h.annPlace, 0)
		noError(t, give(to(h.bossPlace))) // anew
		if _, err := h.AddMember(h.ctx, boss, h.project.ID, pool.MemberInput{Email: h.ann.Email, RoleID: h.engineer.ID}); err != nil {
			t.Fatal(err) // the leaver is back
		}
		if got := h.holder(t, h.bossPlace); len(got.Inherits) != 0 {
			t.Errorf("still the heir: %+v", got)
		}
		want(t, second(h.Leaver(h.ctx, h.root, h.project.ID, h.annPlace.ID)), models.KindNotFound)
		noError(t, h.RemoveMember(h.ctx, boss, h.project.ID, h.annPlace.ID))
		h.wantHeir(t, h.annPlace, 0) // it is not remembered
		words := []string{"create", "delete", "hand-over", "take-back", "hand-over", "take-back", "hand-over", "take-back", "create", "delete"}
		if got := h.actions(t, h.annPlace); !slices.Equal(got, words) {
			t.Errorf("the audit says %q, want %q", got, words)
		}
	})
}

// With a deadline nobody takes part in the change: what follows from it holds
// by the time alone.
func TestHandOverAcrossDeadlines(t *testing.T) {
	eachHall(t, func(t *testing.T, h *hall) {
		heir, _ := h.member(t, h.engineer)
		soon, later := h.store.Now().Add(day), h.store.Now().Add(3*day)
		h.until(t, h.annPlace, &soon)
		h.until(t, heir, &later)
		h.clock.Pass(day)
		if _, err := h.HandOver(h.ctx, h.root, h.project.ID, h.annPlace.ID, pool.HandoverInput{ToMemberID: heir.ID}); err != nil {
			t.Fatal(err)
		}
		h.clock.Pass(2 * day) // the heir's is over, too
		h.wantHeir(t, h.annPlace, 0)
		if _, err := h.HandOver(h.ctx, h.root, h.project.ID, h.annPlace.ID, pool.HandoverInput{ToMemberID: h.bossPlace.ID}); err != nil {
			t.Fatal(err)
		}
		if got := h.holder(t, h.bossPlace); !slices.Equal(got.Inherits, []int64{h.annPlace.ID}) {
			t.Errorf("the second heir: %+v", got)
		}
		end := h.store.Now().Add(day)
		m, err := h.store.Read(h.ctx).Member(models.Everything, h.project.ID, h.annPlace.ID)
		noError(t, err)
		h.until(t, m, &end) // more time: back again
		if got := h.holder(t, h.bossPlace); len(got.Inherits) != 0 {
			t.Errorf("still the heir: %+v", got)
		}
		h.endsAt(t, &end)
		h.clock.Pass(day)
		if got := h.holder(t, h.bossPlace); !got.Ended || got.Left {
			t.Errorf("after the project: %+v", got)
		}
		h.wantHeir(t, h.annPlace, 0)
		leavers, err := h.Leavers(h.ctx, h.root, h.project.ID, models.Page{Limit: 1})
		if err != nil || len(leavers) != 1 || leavers[0].ID != h.annPlace.ID || !leavers[0].LeftAt().Equal(end) {
			t.Errorf("%+v, %v", leavers, err)
		}
		if leavers, err = h.Leavers(h.ctx, h.root, h.project.ID, models.Page{After: leavers[0].ID}); err != nil || len(leavers) != 1 || leavers[0].ID != heir.ID {
			t.Errorf("the next page: %+v, %v", leavers, err)
		}
	})
}

// expires lets a member's deadline pass.
func (h *hall) expires(t *testing.T, m models.Member) {
	t.Helper()
	soon := h.store.Now().Add(day)
	h.until(t, m, &soon)
	h.clock.Pass(day)
}

// handoversTold are the kinds of what a person was told of handovers, oldest
// first.
func (h *hall) handoversTold(t *testing.T, u models.User) (kinds []string) {
	t.Helper()
	list, err := h.store.Read(h.ctx).Notices(u.ID, models.Page{Limit: 200})
	noError(t, err)
	for _, n := range slices.Backward(list) {
		if strings.HasPrefix(n.Kind, "handover.") {
			kinds = append(kinds, n.Kind)
		}
	}
	return kinds
}

// Who is removed after the deadline has left already: the heir keeps the
// directory, until the leaver comes back.
func TestHandOverOutlivesRemoval(t *testing.T) {
	removals := map[string]func(*testing.T, *hall, models.Identity, models.Member){
		"by a manager": func(t *testing.T, h *hall, _ models.Identity, m models.Member) {
			noError(t, h.RemoveMember(h.ctx, h.actor(t, h.boss), h.project.ID, m.ID))
		},
		"by groups": func(t *testing.T, h *hall, i models.Identity, _ models.Member) { h.follow(t, i, "vision") },
	}
	for name, remove := range removals {
		t.Run(name, func(t *testing.T) {
			eachHall(t, func(t *testing.T, h *hall) {
				heir, bob := h.member(t, h.engineer)
				kim := h.identity(t)
				h.follow(t, kim, "vision", "engineer")
				m, err := h.store.Read(h.ctx).Membership(h.project.ID, kim.UserID)
				noError(t, err)
				h.expires(t, m)
				if _, err := h.HandOver(h.ctx, h.root, h.project.ID, m.ID, pool.HandoverInput{ToMemberID: heir.ID}); err != nil {
					t.Fatal(err)
				}
				remove(t, h, kim, m)
				if m, err = h.store.Read(h.ctx).Membership(h.project.ID, kim.UserID); err != nil || m.RemovedAt == nil {
					t.Fatalf("not removed: %+v, %v", m, err)
				}
				h.wantHeir(t, m, heir.ID)
				if got := h.holder(t, heir); !slices.Equal(got.Inherits, []int64{m.ID}) {
					t.Errorf("the heir: %+v", got)
				}
				if got := h.actions(t, m); slices.Contains(got, "take-back") {
					t.Errorf("the audit says %q", got)
				}
				if got := h.handoversTold(t, bob); !slices.Equal(got, []string{"handover.given"}) {
					t.Errorf("the heir was told %q", got)
				}
				h.follow(t, kim, "vision", "engineer") // back
				if got := h.handoversTold(t, bob); !slices.Equal(got, []string{"handover.given", "handover.ended"}) {
					t.Errorf("the heir was told %q", got)
				}
			})
		})
	}
}

// A handover whose heir's deadline passed lies still: it can be taken back,
// and ends, which is told and audited, when the heir gets more time.
func TestHandOverDoesNotRevive(t *testing.T) {
	eachHall(t, func(t *testing.T, h *hall) {
		boss := h.actor(t, h.boss)
		heir, bob := h.member(t, h.engineer)
		noError(t, h.RemoveMember(h.ctx, boss, h.project.ID, h.annPlace.ID))
		give := func() {
			t.Helper()
			if _, err := h.HandOver(h.ctx, boss, h.project.ID, h.annPlace.ID, pool.HandoverInput{ToMemberID: heir.ID}); err != nil {
				t.Fatal(err)
			}
		}
		told := []string{"handover.given"}
		step := func(name string, heirID int64, actions ...string) {
			t.Helper()
			h.wantHeir(t, h.annPlace, heirID)
			if got := h.holder(t, heir); (len(got.Inherits) == 0) == (heirID != 0) && !got.Left {
				t.Errorf("%s: the heir: %+v", name, got)
			}
			if got := h.actions(t, h.annPlace); !slices.Equal(got, append([]string{"create", "delete"}, actions...)) {
				t.Errorf("%s: the audit says %q", name, got)
			}
			if got := h.handoversTold(t, bob); !slices.Equal(got, told) {
				t.Errorf("%s: the heir was told %q, want %q", name, got, told)
			}
		}
		give()
		h.expires(t, heir) // moving an end that is ahead ends nothing
		step("expired", 0, "hand-over")
		noError(t, h.TakeBack(h.ctx, boss, h.project.ID, h.annPlace.ID))
		want(t, h.TakeBack(h.ctx, boss, h.project.ID, h.annPlace.ID), models.KindNotFound, "handover")
		h.until(t, heir, nil)
		step("taken back", 0, "hand-over", "take-back")

		give()
		told = append(told, "handover.given")
		step("anew", heir.ID, "hand-over", "take-back", "hand-over")
		h.expires(t, heir)
		later := h.store.Now().Add(day)
		h.until(t, heir, &later)
		told = append(told, "handover.ended")
		step("more time", 0, "hand-over", "take-back", "hand-over", "take-back")
		want(t, h.TakeBack(h.ctx, boss, h.project.ID, h.annPlace.ID), models.KindNotFound, "handover")
		give()
		h.until(t, heir, nil) // who is there stays the heir
		told = append(told, "handover.given")
		step("no end", heir.ID, "hand-over", "take-back", "hand-over", "take-back", "hand-over")
	})
}

// Only who may change members hands over; to others, and about others'
// projects, things are as always.
func TestWhoMayHandOver(t *testing.T) {
	eachHall(t, func(t *testing.T, h *hall) {
		heir, bob := h.member(t, h.engineer)
		noError(t, h.RemoveMember(h.ctx, h.root, h.project.ID, h.annPlace.ID))
		other := h.office.project(t, "speech", cores(100))
		foreign, _ := h.member(t, h.role(t, other.ID, "lead", "manager", cores(1)))
		in := pool.HandoverInput{ToMemberID: heir.ID}
		for _, c := range []struct {
			name            string
			actor           policies.Actor
			project, member int64
			in              pool.HandoverInput
			kind            models.Kind
		}{
			{"nobody", policies.Actor{}, h.project.ID, h.annPlace.ID, in, models.KindUnauthenticated},
			{"a stranger", h.actor(t, h.eve), h.project.ID, h.annPlace.ID, in, models.KindNotFound},
			{"who left", h.actor(t, h.ann), h.project.ID, h.annPlace.ID, in, models.KindNotFound},
			{"a member", h.actor(t, bob), h.project.ID, h.annPlace.ID, in, models.KindForbidden},
			{"to a foreign member", h.actor(t, h.boss), h.project.ID, h.annPlace.ID, pool.HandoverInput{ToMemberID: foreign.ID}, models.KindInvalid},
			{"a foreign member's", h.actor(t, h.boss), h.project.ID, foreign.ID, in, models.KindNotFound},
			{"in a foreign project", h.actor(t, h.boss), other.ID, foreign.ID, in, models.KindNotFound},
			{"negative", h.root, -1, -1, pool.HandoverInput{ToMemberID: -1}, models.KindNotFound},
		} {
			_, err := h.HandOver(h.ctx, c.actor, c.project, c.member, c.in)
			if models.KindOf(err) != c.kind {
				t.Errorf("%s: %v, want %s", c.name, err, c.kind)
			}
			if err := h.TakeBack(h.ctx, c.actor, c.project, c.member); err == nil {
				t.Errorf("%s: took back what nobody has", c.name)
			}
		}
		h.wantHeir(t, h.annPlace, 0)
		if list, err := h.Leavers(h.ctx, h.actor(t, bob), h.project.ID, models.Page{}); err != nil || len(list) != 1 {
			t.Errorf("members see who left: %+v, %v", list, err)
		}
		want(t, second(h.Heirs(h.ctx, h.actor(t, bob), h.project.ID)), models.KindForbidden)
		want(t, second(h.Leavers(h.ctx, h.actor(t, h.eve), h.project.ID, models.Page{})), models.KindNotFound)
		if heirs, err := h.Heirs(h.ctx, h.actor(t, h.boss), h.project.ID); err != nil || len(heirs) != 2 {
			t.Errorf("heirs: %+v, %v", heirs, err)
		}
	})
}

// Of many who hand over at once one succeeds.
func TestOneHeir(t *testing.T) {
	eachHall(t, func(t *testing.T, h *hall) {
		heir, _ := h.member(t, h.engineer)
		noError(t, h.RemoveMember(h.ctx, h.root, h.project.ID, h.annPlace.ID))
		h.clock.Pass(time.Second)
		var kinds modelstest.Kinds
		modelstest.Together(8, func(i int) {
			in := pool.HandoverInput{ToMemberID: []int64{heir.ID, h.bossPlace.ID}[i%2]}
			_, err := h.HandOver(h.ctx, h.root, h.project.ID, h.annPlace.ID, in)
			kinds.Add(err)
		})
		kinds.Want(t, 1, models.KindConflict, 7)
	})
}
