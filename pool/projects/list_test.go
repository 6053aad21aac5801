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
		page = in.After(rows[len(rows)-1])
		page.Limit = 4
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

// A project that moves in the order after it ended a page takes no other with it: the
// next page begins where it stood.
func TestAPageGoesOnWhereTheOneBeforeEnded(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		var all []models.Project
		for i := range int64(5) {
			end := o.Store.Now().Add(time.Duration(i+1) * time.Hour)
			all = append(all, o.NewProject(t, fmt.Sprintf("Ä%c", 'A'+i), pooltest.Cores(10*(i+1))))
			set(t, o, all[i], func(in *projects.ProjectInput) { in.EndsAt = &end })
		}
		far := o.Store.Now().Add(99 * time.Hour)
		for sort, move := range map[string]func(*projects.ProjectInput){
			"name":      func(in *projects.ProjectInput) { in.Name = "äz" },
			"ends_at":   func(in *projects.ProjectInput) { in.EndsAt = &far },
			"quota":     func(in *projects.ProjectInput) { in.Quota = pooltest.Cores(99).Input() },
			"remaining": func(in *projects.ProjectInput) { in.Quota = pooltest.Cores(99).Input() },
		} {
			in := projects.ProjectQuery{Sort: sort}
			first, err := o.ListProjects(o.Ctx, o.Root, in, store.Page{Limit: 2})
			if err != nil || len(first) != 2 {
				t.Fatal(sort, first, err)
			}
			set(t, o, first[1].Project, move)
			rest, err := o.ListProjects(o.Ctx, o.Root, in, in.After(first[1]))
			if err != nil || len(rest) != 4 || rest[0].ID != all[2].ID || rest[3].ID != first[1].ID {
				t.Errorf("by %s: %d projects, %+v, %v", sort, len(rest), rest, err)
			}
			set(t, o, first[1].Project, func(*projects.ProjectInput) {}) // as it was
			for _, key := range []string{"", "x\x00"} {
				_, err = o.ListProjects(o.Ctx, o.Root, in, store.Page{After: 1, Key: key})
				pooltest.WantError(t, err, models.KindInvalid, "cursor")
			}
		}
	})
}

// set changes what a project was when it was read.
func set(t *testing.T, o *world, p models.Project, change func(*projects.ProjectInput)) {
	t.Helper()
	in := projects.InputOf(p)
	in.Version, in.Confirmation = 0, pooltest.Confirmed
	change(&in)
	if _, err := o.UpdateProject(o.Ctx, o.Root, p.ID, in); err != nil {
		t.Fatal(err)
	}
}
