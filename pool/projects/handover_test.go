package projects_test

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
)

// holder is what decides over a member's writing now.
func (h *example) holder(t *testing.T, m models.Member) models.DirectoryUser {
	t.Helper()
	v, err := h.Store.Read(h.Ctx).DirectoryUser(h.Vision.ID, m.ID)
	pooltest.NoError(t, err)
	return v
}

func (h *example) wantHeir(t *testing.T, from models.Member, heir int64) {
	t.Helper()
	v, err := h.FormerMember(h.Ctx, h.Root, h.Vision.ID, from.ID)
	pooltest.NoError(t, err)
	if (v.RecipientID == nil) != (heir == 0) || heir != 0 && *v.RecipientID != heir {
		t.Errorf("the heir of %d is %v, want %d", from.ID, v.RecipientID, heir)
	}
}

// actions are the audit's words for what was done to a member, oldest first.
func (h *example) actions(t *testing.T, m models.Member) (list []string) {
	t.Helper()
	entries, err := h.Store.Read(h.Ctx).Audit(store.AuditFilter{}, store.Page{Limit: 200})
	pooltest.NoError(t, err)
	for _, e := range slices.Backward(entries) {
		if e.Object == "member" && e.ObjectID == m.ID {
			list = append(list, e.Action)
		}
	}
	return list
}

// A leaver's directory is handed to a member, who has it until either of the
// two comes or goes.
func TestHandover(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		boss, to := h.Actor(t, h.Boss), func(m models.Member) projects.HandoverInput { return projects.HandoverInput{ToMemberID: m.ID} }
		heir, bob := h.NewMember(t, h.Engineer)
		give := func(in projects.HandoverInput) error {
			_, err := h.CreateHandover(h.Ctx, boss, h.Vision.ID, h.AnnMember.ID, in)
			return err
		}
		pooltest.WantError(t, give(to(heir)), models.KindConflict, "is still a member")
		pooltest.NoError(t, h.RemoveMember(h.Ctx, boss, h.Vision.ID, h.AnnMember.ID))
		if got := h.holder(t, h.AnnMember); !got.Left {
			t.Errorf("who left: %+v", got)
		}
		pooltest.WantError(t, give(to(h.AnnMember)), models.KindInvalid, "to_member_id")
		pooltest.WantError(t, give(projects.HandoverInput{ToMemberID: 999}), models.KindInvalid, "to_member_id")
		pooltest.NoError(t, give(to(heir)))
		h.wantHeir(t, h.AnnMember, heir.ID)
		if got := h.holder(t, heir); !slices.Equal(got.Inherits, []int64{h.AnnMember.ID}) || got.Left || got.Ended {
			t.Errorf("the heir: %+v", got)
		}
		pooltest.WantError(t, give(to(h.BossMember)), models.KindConflict, "End that handover first")
		list, err := h.Store.Read(h.Ctx).Notifications(bob.ID, store.Page{})
		pooltest.NoError(t, err)
		if text := fmt.Sprintf("The directory of %s in vision was handed over to you: /notebook/%d/%d. Your workspaces can write to it.", h.Ann.Name, h.Vision.ID, h.AnnMember.ID); list[0].Text.String() != text {
			t.Errorf("the heir is told %s", list[0].Text)
		}

		pooltest.NoError(t, h.EndHandover(h.Ctx, boss, h.Vision.ID, h.AnnMember.ID))
		pooltest.WantError(t, h.EndHandover(h.Ctx, boss, h.Vision.ID, h.AnnMember.ID), models.KindNotFound)
		h.wantHeir(t, h.AnnMember, 0)
		pooltest.NoError(t, give(to(heir)))
		pooltest.NoError(t, h.RemoveMember(h.Ctx, boss, h.Vision.ID, heir.ID)) // the heir goes
		h.wantHeir(t, h.AnnMember, 0)
		pooltest.NoError(t, give(to(h.BossMember))) // anew
		if _, err := h.AddMember(h.Ctx, boss, h.Vision.ID, projects.MemberInput{Email: h.Ann.Email, RoleID: h.Engineer.ID}); err != nil {
			t.Fatal(err) // the leaver is back
		}
		if got := h.holder(t, h.BossMember); len(got.Inherits) != 0 {
			t.Errorf("still the heir: %+v", got)
		}
		pooltest.WantError(t, pooltest.Error(h.FormerMember(h.Ctx, h.Root, h.Vision.ID, h.AnnMember.ID)), models.KindNotFound)
		pooltest.NoError(t, h.RemoveMember(h.Ctx, boss, h.Vision.ID, h.AnnMember.ID))
		h.wantHeir(t, h.AnnMember, 0) // it is not remembered
		words := []string{"create", "delete", "hand-over", "take-back", "hand-over", "take-back", "hand-over", "take-back", "create", "delete"}
		if got := h.actions(t, h.AnnMember); !slices.Equal(got, words) {
			t.Errorf("the audit says %q, want %q", got, words)
		}
	})
}

// With a deadline nobody takes part in the change: what follows from it holds
// by the time alone.
func TestHandoverAcrossDeadlines(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		heir, _ := h.NewMember(t, h.Engineer)
		soon, later := h.Store.Now().Add(day), h.Store.Now().Add(3*day)
		h.EndMembership(t, h.AnnMember, &soon)
		h.EndMembership(t, heir, &later)
		h.Clock.Advance(day)
		if _, err := h.CreateHandover(h.Ctx, h.Root, h.Vision.ID, h.AnnMember.ID, projects.HandoverInput{ToMemberID: heir.ID}); err != nil {
			t.Fatal(err)
		}
		h.Clock.Advance(2 * day) // the heir's is over, too
		h.wantHeir(t, h.AnnMember, 0)
		if _, err := h.CreateHandover(h.Ctx, h.Root, h.Vision.ID, h.AnnMember.ID, projects.HandoverInput{ToMemberID: h.BossMember.ID}); err != nil {
			t.Fatal(err)
		}
		if got := h.holder(t, h.BossMember); !slices.Equal(got.Inherits, []int64{h.AnnMember.ID}) {
			t.Errorf("the second heir: %+v", got)
		}
		end := h.Store.Now().Add(day)
		m, err := h.Store.Read(h.Ctx).Member(store.AllProjects, h.Vision.ID, h.AnnMember.ID)
		pooltest.NoError(t, err)
		h.EndMembership(t, m, &end) // more time: back again
		if got := h.holder(t, h.BossMember); len(got.Inherits) != 0 {
			t.Errorf("still the heir: %+v", got)
		}
		h.EndProject(t, h.Vision, &end)
		h.Clock.Advance(day)
		if got := h.holder(t, h.BossMember); !got.Ended || got.Left {
			t.Errorf("after the project: %+v", got)
		}
		h.wantHeir(t, h.AnnMember, 0)
		formerMembers, err := h.FormerMembers(h.Ctx, h.Root, h.Vision.ID, store.Page{Limit: 1})
		if err != nil || len(formerMembers) != 1 || formerMembers[0].ID != h.AnnMember.ID || !formerMembers[0].LeftAt().Equal(end) {
			t.Errorf("%+v, %v", formerMembers, err)
		}
		if formerMembers, err = h.FormerMembers(h.Ctx, h.Root, h.Vision.ID, store.Page{After: formerMembers[0].ID}); err != nil || len(formerMembers) != 1 || formerMembers[0].ID != heir.ID {
			t.Errorf("the next page: %+v, %v", formerMembers, err)
		}
	})
}

// expires lets a member's deadline pass.
func (h *example) expires(t *testing.T, m models.Member) {
	t.Helper()
	soon := h.Store.Now().Add(day)
	h.EndMembership(t, m, &soon)
	h.Clock.Advance(day)
}

// handoversTold are the kinds of what a person was told of handovers, oldest
// first.
func (h *example) handoversTold(t *testing.T, u models.User) (kinds []string) {
	t.Helper()
	list, err := h.Store.Read(h.Ctx).Notifications(u.ID, store.Page{Limit: 200})
	pooltest.NoError(t, err)
	for _, n := range slices.Backward(list) {
		if strings.HasPrefix(n.Kind, "handover.") {
			kinds = append(kinds, n.Kind)
		}
	}
	return kinds
}

// Who is removed after the deadline has left already: the heir keeps the
// directory, until the leaver comes back.
func TestHandoverOutlivesRemoval(t *testing.T) {
	removals := map[string]func(*testing.T, *example, models.Identity, models.Member){
		"by a manager": func(t *testing.T, h *example, _ models.Identity, m models.Member) {
			pooltest.NoError(t, h.RemoveMember(h.Ctx, h.Actor(t, h.Boss), h.Vision.ID, m.ID))
		},
		"by groups": func(t *testing.T, h *example, i models.Identity, _ models.Member) { h.follow(t, i, "vision") },
	}
	for name, remove := range removals {
		t.Run(name, func(t *testing.T) {
			eachExample(t, func(t *testing.T, h *example) {
				heir, bob := h.NewMember(t, h.Engineer)
				kim := h.identity(t)
				h.follow(t, kim, "vision", "engineer")
				m, err := h.Store.Read(h.Ctx).Membership(h.Vision.ID, kim.UserID)
				pooltest.NoError(t, err)
				h.expires(t, m)
				if _, err := h.CreateHandover(h.Ctx, h.Root, h.Vision.ID, m.ID, projects.HandoverInput{ToMemberID: heir.ID}); err != nil {
					t.Fatal(err)
				}
				remove(t, h, kim, m)
				if m, err = h.Store.Read(h.Ctx).Membership(h.Vision.ID, kim.UserID); err != nil || m.RemovedAt == nil {
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
func TestHandoverDoesNotRevive(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		boss := h.Actor(t, h.Boss)
		heir, bob := h.NewMember(t, h.Engineer)
		pooltest.NoError(t, h.RemoveMember(h.Ctx, boss, h.Vision.ID, h.AnnMember.ID))
		give := func() {
			t.Helper()
			if _, err := h.CreateHandover(h.Ctx, boss, h.Vision.ID, h.AnnMember.ID, projects.HandoverInput{ToMemberID: heir.ID}); err != nil {
				t.Fatal(err)
			}
		}
		told := []string{"handover.given"}
		step := func(name string, heirID int64, actions ...string) {
			t.Helper()
			h.wantHeir(t, h.AnnMember, heirID)
			if got := h.holder(t, heir); (len(got.Inherits) == 0) == (heirID != 0) && !got.Left {
				t.Errorf("%s: the heir: %+v", name, got)
			}
			if got := h.actions(t, h.AnnMember); !slices.Equal(got, append([]string{"create", "delete"}, actions...)) {
				t.Errorf("%s: the audit says %q", name, got)
			}
			if got := h.handoversTold(t, bob); !slices.Equal(got, told) {
				t.Errorf("%s: the heir was told %q, want %q", name, got, told)
			}
		}
		give()
		h.expires(t, heir) // moving an end that is ahead ends nothing
		step("expired", 0, "hand-over")
		pooltest.NoError(t, h.EndHandover(h.Ctx, boss, h.Vision.ID, h.AnnMember.ID))
		pooltest.WantError(t, h.EndHandover(h.Ctx, boss, h.Vision.ID, h.AnnMember.ID), models.KindNotFound, "handover")
		h.EndMembership(t, heir, nil)
		step("taken back", 0, "hand-over", "take-back")

		give()
		told = append(told, "handover.given")
		step("anew", heir.ID, "hand-over", "take-back", "hand-over")
		h.expires(t, heir)
		later := h.Store.Now().Add(day)
		h.EndMembership(t, heir, &later)
		told = append(told, "handover.ended")
		step("more time", 0, "hand-over", "take-back", "hand-over", "take-back")
		pooltest.WantError(t, h.EndHandover(h.Ctx, boss, h.Vision.ID, h.AnnMember.ID), models.KindNotFound, "handover")
		give()
		h.EndMembership(t, heir, nil) // who is there stays the heir
		told = append(told, "handover.given")
		step("no end date", heir.ID, "hand-over", "take-back", "hand-over", "take-back", "hand-over")
	})
}

// Only who may change members hands over; to others, and about others'
// projects, things are as always.
func TestWhoMayCreateHandovers(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		heir, bob := h.NewMember(t, h.Engineer)
		pooltest.NoError(t, h.RemoveMember(h.Ctx, h.Root, h.Vision.ID, h.AnnMember.ID))
		other := h.NewProject(t, "speech", pooltest.Cores(100))
		foreign, _ := h.NewMember(t, h.NewRole(t, other.ID, "lead", "manager", pooltest.Cores(1)))
		in := projects.HandoverInput{ToMemberID: heir.ID}
		for _, c := range []struct {
			name            string
			actor           policies.Actor
			project, member int64
			in              projects.HandoverInput
			kind            models.Kind
		}{
			{"nobody", policies.Actor{}, h.Vision.ID, h.AnnMember.ID, in, models.KindUnauthenticated},
			{"a stranger", h.Actor(t, h.Eve), h.Vision.ID, h.AnnMember.ID, in, models.KindNotFound},
			{"who left", h.Actor(t, h.Ann), h.Vision.ID, h.AnnMember.ID, in, models.KindNotFound},
			{"a member", h.Actor(t, bob), h.Vision.ID, h.AnnMember.ID, in, models.KindForbidden},
			{"to a foreign member", h.Actor(t, h.Boss), h.Vision.ID, h.AnnMember.ID, projects.HandoverInput{ToMemberID: foreign.ID}, models.KindInvalid},
			{"a foreign member's", h.Actor(t, h.Boss), h.Vision.ID, foreign.ID, in, models.KindNotFound},
			{"in a foreign project", h.Actor(t, h.Boss), other.ID, foreign.ID, in, models.KindNotFound},
			{"negative", h.Root, -1, -1, projects.HandoverInput{ToMemberID: -1}, models.KindNotFound},
		} {
			_, err := h.CreateHandover(h.Ctx, c.actor, c.project, c.member, c.in)
			if models.KindOf(err) != c.kind {
				t.Errorf("%s: %v, want %s", c.name, err, c.kind)
			}
			if err := h.EndHandover(h.Ctx, c.actor, c.project, c.member); err == nil {
				t.Errorf("%s: took back what nobody has", c.name)
			}
		}
		h.wantHeir(t, h.AnnMember, 0)
		if list, err := h.FormerMembers(h.Ctx, h.Actor(t, bob), h.Vision.ID, store.Page{}); err != nil || len(list) != 1 {
			t.Errorf("members see who left: %+v, %v", list, err)
		}
		pooltest.WantError(t, pooltest.Error(h.Recipients(h.Ctx, h.Actor(t, bob), h.Vision.ID)), models.KindForbidden)
		pooltest.WantError(t, pooltest.Error(h.FormerMembers(h.Ctx, h.Actor(t, h.Eve), h.Vision.ID, store.Page{})), models.KindNotFound)
		if heirs, err := h.Recipients(h.Ctx, h.Actor(t, h.Boss), h.Vision.ID); err != nil || len(heirs) != 2 {
			t.Errorf("heirs: %+v, %v", heirs, err)
		}
	})
}

// Of many who hand over at once one succeeds.
func TestOneHeir(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		heir, _ := h.NewMember(t, h.Engineer)
		pooltest.NoError(t, h.RemoveMember(h.Ctx, h.Root, h.Vision.ID, h.AnnMember.ID))
		h.Clock.Advance(time.Second)
		var kinds storetest.ErrorCounts
		storetest.Concurrently(8, func(i int) {
			in := projects.HandoverInput{ToMemberID: []int64{heir.ID, h.BossMember.ID}[i%2]}
			_, err := h.CreateHandover(h.Ctx, h.Root, h.Vision.ID, h.AnnMember.ID, in)
			kinds.Add(err)
		})
		kinds.Want(t, 1, models.KindConflict, 7)
	})
}
