package projects_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/pooltest"
	"weir/pool/projects"
)

// TestProjectsAreSortedAndPaged reads every order page by page and compares
// it with the whole list, sorted here.
func TestProjectsAreSortedAndPaged(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		random := rand.New(rand.NewPCG(3, 4))
		for i := range 25 {
			in := projects.ProjectInput{Name: fmt.Sprintf("p%c%d", 'a'+rune(random.IntN(26)), i), Quota: pooltest.Cores(100 * random.Int64N(4)).Input(),
				Confirmation: pooltest.Confirmed}
			if random.IntN(2) == 0 {
				end := o.Store.Now().Add(time.Duration(1+random.Int64N(3)) * time.Hour)
				in.EndsAt = &end
			}
			p, err := o.CreateProject(o.Ctx, o.Root, in)
			if err != nil {
				t.Fatal(err)
			}
			if p.Quota.GPUCores == 0 {
				continue
			}
			r := o.NewRole(t, p.ID, "r", models.PermissionMember, pooltest.Cores(10*random.Int64N(3)))
			for range random.IntN(4) {
				m, _ := o.NewMember(t, r)
				o.NewWorkspace(t, m, models.Demand{GPUs: 1, Cores: random.Int64N(2)})
			}
		}
		all, err := o.ListProjects(o.Ctx, o.Root, projects.ProjectQuery{}, store.Page{Limit: 100})
		if err != nil || len(all) != 25 {
			t.Fatal(len(all), err)
		}
		for _, sort := range append(store.ProjectSorts, "") {
			for _, down := range []bool{false, true} {
				want := slices.Clone(all)
				slices.SortFunc(want, func(a, b projects.ProjectView) int {
					by := cmp.Or(compareBy(sort, a, b), cmp.Compare(a.ID, b.ID))
					if down {
						by = -by
					}
					return by
				})
				o.pagesAre(t, projects.ProjectQuery{Sort: sort, Order: orders[down]}, want)
			}
		}
	})
}

var orders = map[bool]string{false: "asc", true: "desc"} // by descending

func compareBy(sort string, a, b projects.ProjectView) int {
	key := func(p projects.ProjectView) int64 {
		switch sort {
		case "ends_at":
			if p.EndsAt == nil {
				return 1 << 62
			}
			return p.EndsAt.UnixNano()
		case "quota":
			return p.Quota.GPUCores
		case "allocated":
			return p.Allocated.GPUCores
		case "in_use":
			return p.InUse.GPUCores
		case "remaining":
			return p.Quota.GPUCores - p.Allocated.GPUCores
		case "members":
			return p.Members
		}
		return 0
	}
	if sort == "name" {
		return cmp.Compare(a.Name, b.Name)
	}
	return cmp.Compare(key(a), key(b))
}

func (o *world) pagesAre(t *testing.T, in projects.ProjectQuery, want []projects.ProjectView) {
	t.Helper()
	var got []int64
	page := store.Page{Limit: 4}
	for {
		rows, err := o.ListProjects(o.Ctx, o.Root, in, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range rows {
			got = append(got, p.ID)
		}
		if len(rows) < page.Limit {
			break
		}
		page.After = rows[len(rows)-1].ID
	}
	var ids []int64
	for _, p := range want {
		ids = append(ids, p.ID)
	}
	if !slices.Equal(got, ids) {
		t.Errorf("%+v: got %v, want %v", in, got, ids)
	}
}

func TestProjectsAreFiltered(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		now := o.Store.Now()
		later, much := now.Add(time.Hour), now.Add(48*time.Hour)
		for name, in := range map[string]projects.ProjectInput{
			"open %": {}, "short": {EndsAt: &later}, "planned": {StartsAt: &much},
		} {
			in.Name, in.Confirmation = name, pooltest.Confirmed
			if _, err := o.CreateProject(o.Ctx, o.Root, in); err != nil {
				t.Fatal(err)
			}
		}
		o.Clock.Advance(2 * time.Hour)
		names := func(in projects.ProjectQuery) (list []string) {
			t.Helper()
			rows, err := o.ListProjects(o.Ctx, o.Root, in, store.Page{})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range rows {
				list = append(list, p.Name)
			}
			return list
		}
		for _, c := range []struct {
			in   projects.ProjectQuery
			want []string
		}{
			{projects.ProjectQuery{State: models.ProjectsActive}, []string{"open %"}},
			{projects.ProjectQuery{State: models.ProjectsEnded}, []string{"short"}},
			{projects.ProjectQuery{State: models.ProjectsPlanned}, []string{"planned"}},
			{projects.ProjectQuery{Search: "%"}, []string{"open %"}},
			{projects.ProjectQuery{Search: "SHO"}, []string{"short"}},
			{projects.ProjectQuery{Search: "nothing"}, nil},
		} {
			if got := names(c.in); !slices.Equal(got, c.want) {
				t.Errorf("%+v: %v, want %v", c.in, got, c.want)
			}
		}
		_, err := o.ListProjects(o.Ctx, o.Root, projects.ProjectQuery{Sort: "id; DROP TABLE projects", Order: "down", State: "x"}, store.Page{})
		pooltest.WantError(t, err, models.KindInvalid, "sort", "order", "state")
		if rows, err := o.ListProjects(o.Ctx, o.Actor(t, o.NewPerson(t)), projects.ProjectQuery{}, store.Page{}); err != nil || len(rows) > 0 {
			t.Errorf("somebody of no project sees %v, %v", rows, err)
		}
	})
}

// A foreign project's id as the cursor tells nothing of it: neither where it
// would stand in an order, nor that it exists.
func TestCursorsTellNothingOfForeignProjects(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		foreign := o.NewProject(t, "m", pooltest.Cores(200))
		var actor policies.Actor
		for i, name := range []string{"a", "z"} {
			p := o.NewProject(t, name, pooltest.Cores(100+200*int64(i)))
			r := o.NewRole(t, p.ID, "r", models.PermissionMember, pooltest.Cores(1))
			if i == 0 {
				_, u := o.NewMember(t, r)
				actor = o.Actor(t, u)
				continue
			}
			if _, err := o.AddMember(o.Ctx, o.Root, p.ID, projects.MemberInput{Email: actor.User.Email, RoleID: r.ID}); err != nil {
				t.Fatal(err)
			}
			actor = o.Actor(t, actor.User)
		}
		for _, sort := range append(store.ProjectSorts, "") {
			for _, down := range []bool{false, true} {
				for _, id := range []int64{foreign.ID, 9999} {
					list, err := o.ListProjects(o.Ctx, actor, projects.ProjectQuery{Sort: sort, Order: orders[down]}, store.Page{After: id})
					if err != nil || len(list) > 0 {
						t.Errorf("sort %q, down %v, after %d: %d projects, %v", sort, down, id, len(list), err)
					}
				}
			}
		}
	})
}
