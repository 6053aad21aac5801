package requests_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/pooltest"
	"weir/pool/projects"
	"weir/pool/requests"
)

const day = 24 * time.Hour

func (o *world) periods() *requests.Periods {
	return requests.NewPeriods(o.Store)
}

// heard are the kinds of what a person was told of ends, oldest first.
func (o *world) heard(t pooltest.Reporter, u models.User) (kinds []string) {
	t.Helper()
	var list []models.Notification
	for page := (store.Page{Limit: store.PageSize}); ; page.After = list[len(list)-1].ID {
		more, err := o.Store.Read(o.Ctx).Notifications(u.ID, page)
		if err != nil {
			t.Fatalf("%v", err)
		}
		list = append(list, more...)
		if len(more) < store.PageSize {
			break
		}
	}
	for _, n := range slices.Backward(list) {
		if strings.HasPrefix(n.Kind, "period.") || strings.HasPrefix(n.Kind, "deadline.") {
			kinds = append(kinds, n.Kind)
		}
	}
	return kinds
}

func (o *world) wantTold(t *testing.T, u models.User, want ...string) {
	t.Helper()
	if got := o.heard(t, u); !slices.Equal(got, want) {
		t.Errorf("%s was told %q, want %q", u.Email, got, want)
	}
}

// round looks at ends; next must be when something is due, or within the
// usual pause.
func (o *world) round(t *testing.T, p *requests.Periods) time.Time {
	t.Helper()
	next, err := p.Round(o.Ctx)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// A project's end is told to its managers 7 days and 1 day ahead and at the
// end, and in the last day to who holds something; an extension begins anew.
func TestNoticesOfAPeriod(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		p := h.periods()
		h.NewWorkspace(t, h.AnnMember, models.Demand{GPUs: 1, Cores: 10})
		end := h.Store.Now().Add(10 * day)
		h.EndProject(t, h.Vision, &end)
		h.round(t, p)
		h.wantTold(t, h.Boss)
		h.Clock.Advance(3*day - time.Second)
		if next := h.round(t, p); !next.Equal(end.Add(-7 * day)) {
			t.Errorf("the next look is at %s", next)
		}
		h.Clock.Advance(time.Second)
		for range 3 {
			h.round(t, p)
		}
		h.wantTold(t, h.Boss, "period.ending")
		h.wantTold(t, h.Ann)
		h.Clock.Advance(6 * day)
		h.round(t, p)
		h.round(t, h.periods()) // another server
		h.wantTold(t, h.Boss, "period.ending", "period.ending")
		h.wantTold(t, h.Ann, "period.ending")

		end = end.Add(30 * day)
		h.EndProject(t, h.Vision, &end)
		h.Clock.Advance(2 * day)
		h.round(t, p)
		h.wantTold(t, h.Ann, "period.ending")
		h.Clock.Advance(28*day + 12*time.Hour) // nobody looked for a month: the nearest only
		h.round(t, p)
		h.wantTold(t, h.Boss, "period.ending", "period.ending", "period.ending")
		h.Clock.Advance(day)
		h.round(t, p)
		h.round(t, p)
		h.wantTold(t, h.Boss, "period.ending", "period.ending", "period.ending", "period.ended")
		h.wantTold(t, h.Ann, "period.ending", "period.ending", "period.ended")
		h.wantTold(t, h.Eve)
		h.wantTold(t, h.Root.User)

		list, err := h.Store.Read(h.Ctx).Notifications(h.Ann.ID, store.Page{})
		pooltest.NoError(t, err)
		n := list[0]
		text := fmt.Sprintf("The project vision ended on %s. Its workspaces, runs and deployments were stopped. Its files are kept and remain readable.", models.LastDay(end).Format(time.DateOnly))
		if n.Text.String() != text || n.Link != fmt.Sprintf("/projects/%d", h.Vision.ID) || n.ProjectID == nil || *n.ProjectID != h.Vision.ID {
			t.Errorf("%+v", n)
		}
	})
}

// A member is told of the own deadline; the managers in the last day, in one
// notice of all who end together.
func TestNoticesOfDeadlines(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		p := h.periods()
		second, bob := h.NewMember(t, h.Engineer)
		gone, kim := h.NewMember(t, h.Engineer)
		until := h.Store.Now().Add(8*day + 18*time.Hour)
		for _, m := range []models.Member{h.AnnMember, second, gone} {
			h.EndMembership(t, m, &until)
		}
		pooltest.NoError(t, h.RemoveMember(h.Ctx, h.Root, h.Vision.ID, gone.ID))
		h.Clock.Advance(2 * day)
		h.round(t, p)
		h.Clock.Advance(6 * day)
		h.round(t, p)
		h.wantTold(t, h.Boss, "deadline.members")
		h.wantTold(t, h.Ann, "deadline.ending", "deadline.ending")
		h.EndMembership(t, second, nil)
		h.Clock.Advance(18 * time.Hour)
		h.round(t, p)
		h.round(t, p)
		h.wantTold(t, h.Boss, "deadline.members")
		h.wantTold(t, h.Ann, "deadline.ending", "deadline.ending", "deadline.ended")
		h.wantTold(t, bob, "deadline.ending", "deadline.ending")
		h.wantTold(t, kim)
		list, err := h.Store.Read(h.Ctx).Notifications(h.Boss.ID, store.Page{})
		pooltest.NoError(t, err)
		if text := "The membership of 2 members of vision ends on 2030-01-10 18:00 UTC."; list[0].Text.String() != text {
			t.Errorf("%s", list[0].Text)
		}
	})
}

// Where nobody in the project may change members, the administrators are told
// in their place.
func TestNoticesWithoutManagers(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		p := h.periods()
		pooltest.NoError(t, h.RemoveMember(h.Ctx, h.Root, h.Vision.ID, h.BossMember.ID))
		pooltest.NoError(t, h.DeleteRole(h.Ctx, h.Root, h.Vision.ID, h.Lead.ID))
		end, until := h.Store.Now().Add(8*day), h.Store.Now().Add(3*day)
		h.EndProject(t, h.Vision, &end)
		h.EndMembership(t, h.AnnMember, &until)
		var told []string
		for _, step := range []struct {
			days time.Duration
			kind string
		}{{1, "period.ending"}, {1, "deadline.members"}, {5, "period.ending"}, {1, "period.ended"}} {
			h.Clock.Advance(step.days * day)
			h.round(t, p)
			told = append(told, step.kind)
			h.wantTold(t, h.Root.User, told...)
		}
		h.wantTold(t, h.Boss)
		h.wantTold(t, h.Eve)
	})
}

// What was over long ago, or when the project was over already, is told
// nobody.
func TestOldEndsAreNoNews(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		p := h.periods()
		soon, later := h.Store.Now().Add(time.Hour), h.Store.Now().Add(2*day)
		h.EndProject(t, h.Vision, &soon)
		h.EndMembership(t, h.AnnMember, &later)
		h.Clock.Advance(3 * day)
		h.round(t, p)
		h.wantTold(t, h.Boss, "period.ended")
		h.wantTold(t, h.Ann)
		other := h.Vision
		other.ID = h.NewProject(t, "speech", pooltest.Cores(1)).ID
		m, u := h.NewMember(t, h.NewRole(t, other.ID, "lead", "owner", pooltest.Cores(1)))
		long := h.Store.Now().Add(day)
		if _, err := h.UpdateMember(h.Ctx, h.Root, other.ID, m.ID, projects.MemberInput{RoleID: m.RoleID, Until: &long}); err != nil {
			t.Fatal(err)
		}
		h.Clock.Advance(40 * day)
		h.round(t, p)
		h.wantTold(t, u)
	})
}

// Of several servers one tells it.
func TestNoticesAndTheirNotesAreOne(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		end := h.Store.Now().Add(day)
		h.EndProject(t, h.Vision, &end)
		p := h.periods()
		storetest.Concurrently(8, func(int) {
			if _, err := p.Round(h.Ctx); err != nil {
				t.Error(err)
			}
		})
		h.wantTold(t, h.Boss, "period.ending")
	})
}

// What the database finds to be told is what the rule says, for any ends and
// whatever was told.
func TestDatabaseFindsWhatIsDue(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		p := h.periods()
		rapid.Check(t, func(r *rapid.T) {
			before := len(h.heard(r, h.Ann))
			until := h.Store.Now().Add(time.Duration(rapid.Int64Range(1, 12*24).Draw(r, "hours until")) * time.Hour)
			if _, err := h.UpdateMember(h.Ctx, h.Root, h.Vision.ID, h.AnnMember.ID, projects.MemberInput{RoleID: h.AnnMember.RoleID, Until: &until}); err != nil {
				r.Fatalf("%v", err)
			}
			want, stage := 0, int64(100)
			for h.Store.Now().Before(until.Add(day)) {
				next, err := p.Round(h.Ctx)
				if err != nil {
					r.Fatalf("%v", err)
				}
				left, now := until.Sub(h.Store.Now()), int64(100)
				switch {
				case left <= 0:
					now = 0
				case left <= day:
					now = 1
				case left <= 7*day:
					now = 7
				}
				if now < stage {
					want, stage = want+1, now
				}
				if got := len(h.heard(r, h.Ann)) - before; got != want {
					r.Fatalf("%d notifications %s before the end, want %d", got, left, want)
				}
				if !next.After(h.Store.Now()) || next.Sub(h.Store.Now()) > 10*time.Minute {
					r.Fatalf("the next look is in %s", next.Sub(h.Store.Now()))
				}
				h.Clock.Advance(time.Duration(rapid.Int64Range(1, 72).Draw(r, "hours")) * time.Hour)
			}
		})
	})
}

// A request for an end that has become earlier than the present one is not approved any more.
func TestExtensionThatWouldShorten(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		end := h.Store.Now().Add(5 * day)
		h.EndProject(t, h.Vision, &end)
		asked := end.Add(10 * day)
		v := h.ask(t, h.Ann, models.Requested{Period: &models.PeriodSpec{ProjectID: h.Vision.ID, EndsAt: &asked}})
		later := end.Add(20 * day)
		h.EndProject(t, h.Vision, &later)
		_, err := h.approve(t, h.Root, v.ID, models.Requested{})
		pooltest.WantError(t, err, models.KindInvalid, "ends_at")
		still := later.Add(day)
		_, err = h.approve(t, h.Root, v.ID, models.Requested{Period: &models.PeriodSpec{ProjectID: h.Vision.ID, EndsAt: &still}})
		pooltest.NoError(t, err)
	})
}

// What is offered about an end: a request in one click, the form to who may
// set it, or that somebody has asked.
func TestExtensions(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		of := func(u models.User) []models.Extension {
			list, err := h.Extensions(h.Ctx, h.Actor(t, u), []int64{h.Vision.ID, 999})
			pooltest.NoError(t, err)
			return list
		}
		end, until := h.Store.Now().Add(6*day), h.Store.Now().Add(5*day)
		far := end.Add(30 * day)
		h.EndProject(t, h.Vision, &far)
		if list := of(h.Ann); len(list) != 0 {
			t.Errorf("far away: %+v", list)
		}
		h.EndProject(t, h.Vision, &end)
		h.EndMembership(t, h.AnnMember, &until)
		list := of(h.Ann)
		if len(list) != 2 || list[0].Kind != "period" || list[0].Direct || list[0].Pending != 0 || !list[0].Later.Equal(end.Add(30*day)) ||
			list[1].Kind != "deadline" || list[1].Direct || list[1].MemberID != h.AnnMember.ID {
			t.Fatalf("%+v", list)
		}
		for _, e := range list {
			v := h.ask(t, h.Ann, e.Requested())
			if _, err := h.Submit(h.Ctx, h.Actor(t, h.Ann), requests.RequestInput{Requested: e.Requested(), Reason: "again"}); models.KindOf(err) != models.KindConflict {
				t.Errorf("asked twice: %v", err)
			}
			if got := of(h.Ann); got[0].Pending == 0 || !got[0].Own {
				t.Errorf("asked %d: %+v", v.ID, got)
			}
		}
		if list := of(h.Boss); len(list) != 1 || list[0].Pending == 0 || list[0].Own || list[0].Direct {
			t.Errorf("another member: %+v", list)
		}
		h.EndMembership(t, h.BossMember, &until)
		if list := of(h.Boss); len(list) != 2 || list[1].Direct || list[1].Pending != 0 {
			t.Errorf("a manager, who sets others' deadlines: %+v", list)
		}
		if list := of(h.Root.User); len(list) != 1 || !list[0].Direct {
			t.Errorf("an administrator: %+v", list)
		}
		if list := of(h.Eve); len(list) != 0 {
			t.Errorf("a stranger: %+v", list)
		}
		h.Clock.Advance(5*day + time.Hour) // ann's membership is over, the project is not
		list = of(h.Ann)
		if len(list) != 1 || list[0].Kind != "deadline" || list[0].Pending == 0 || !list[0].Later.Equal(h.Store.Now().Truncate(day).Add(31*day)) {
			t.Errorf("over: %+v", list)
		}
		if list, err := h.Extensions(h.Ctx, policies.Actor{}, []int64{h.Vision.ID}); err != nil || len(list) != 0 {
			t.Errorf("nobody: %+v, %v", list, err)
		}
	})
}
