package projects_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/projects"
	"weir/workspaces"
)

// busyWorld is a ledger with everything that holds something under it: the
// services that people use, without a runtime.
type busyWorld struct {
	*world
	launches *workspaces.Service
	env      int64
	persons  [people]policies.Actor
	busy     []*busyProject
}

// busyProject is what movers believe to know of one project.
type busyProject struct {
	id   int64
	name string

	mu    sync.Mutex
	model model
}

func newBusyWorld(t *testing.T, o *world) *busyWorld {
	t.Helper()
	m, s := &busyWorld{world: o}, o.Store
	access, err := policies.NewAccess()
	if err != nil {
		t.Fatal(err)
	}
	m.launches = workspaces.NewService(s, access, m.Pool)
	e, err := workspaces.NewCatalog(s, access).Create(m.Ctx, m.Root, workspaces.EnvironmentInput{
		Name: "notebook", Language: "python", LanguageVersion: "3.11", Command: []string{"/bin/sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	m.env = e.ID
	// Their names have no digits, for refusals show them beside numbers.
	for i, name := range [people]string{"ann", "bob", "eve", "joe", "sue"} {
		m.persons[i] = policies.Actor{User: storetest.User(t, s, name+"@example.org", true)}
	}
	return m
}

// open makes a project with two roles and two members.
func (m *busyWorld) open(t *testing.T, name string) *busyProject {
	t.Helper()
	s := &busyProject{name: name, model: model{quota: amount{12, 24}, version: 1}}
	s.id = m.NewProject(t, name, s.model.quota.resources()).ID
	for i, limit := range []amount{{2, 4}, {4, 6}} {
		r := m.NewRole(t, s.id, title(i), models.PermissionMember, limit.resources())
		s.model.roles[i] = modelRole{id: r.ID, version: r.Version, limit: limit}
	}
	for i := range 2 {
		added, err := m.AddMember(m.Ctx, m.Root, s.id, projects.MemberInput{Email: m.persons[i].User.Email, RoleID: s.model.roles[0].id})
		if err != nil {
			t.Fatal(err)
		}
		s.model.members[i] = modelMember{id: added.ID, version: added.Version, present: true}
	}
	return s
}

func title(i int) string { return string(rune('a' + i)) }

var digits = regexp.MustCompile(`\d+`)

// ended is how a service's answer looks to the model. Anything that is not
// for people to see is a fault.
func ended(err error) (outcome, error) {
	var e *models.Error
	switch {
	case err == nil:
		return outcome{}, nil
	case !errors.As(err, &e) || e.Kind == models.KindInternal || e.Kind == models.KindUnavailable:
		return outcome{}, err
	case e.Kind != models.KindNoCapacity:
		return refusal(e.Kind), nil
	}
	o := refusal(e.Kind)
	for _, f := range e.Fields {
		for _, n := range digits.FindAllString(f.Reason.String(), -1) {
			o.numbers += " " + n
		}
	}
	if o.numbers != "" {
		o.numbers = o.numbers[1:]
	}
	return o, nil
}

// moved is ended with what a move that was done has given.
func moved(id, version int64, err error) (outcome, error) {
	if err == nil {
		return outcome{id: id, version: version}, nil
	}
	return ended(err)
}

// do makes a move by the services that people use.
func (m *busyWorld) do(actor policies.Actor, s *busyProject, v move) (outcome, error) {
	switch v.what {
	case createRole:
		r, err := m.CreateRole(m.Ctx, actor, s.id, projects.RoleInput{Name: title(v.title), Permission: models.PermissionMember, Limit: v.amount.resources().Input()})
		return moved(r.ID, r.Version, err)
	case updateRole:
		r, err := m.UpdateRole(m.Ctx, actor, s.id, v.role, projects.RoleInput{Name: title(v.title), Permission: models.PermissionMember,
			Limit: v.amount.resources().Input(), Version: v.version})
		return moved(r.ID, r.Version, err)
	case deleteRole:
		return ended(m.DeleteRole(m.Ctx, actor, s.id, v.role))
	case addMember:
		r, err := m.AddMember(m.Ctx, actor, s.id, projects.MemberInput{Email: m.persons[v.person].User.Email, RoleID: v.role})
		return moved(r.ID, r.Version, err)
	case updateMember:
		r, err := m.UpdateMember(m.Ctx, actor, s.id, s.memberID(v.person), projects.MemberInput{RoleID: v.role, Version: v.version})
		return moved(r.ID, r.Version, err)
	case removeMember:
		return ended(m.RemoveMember(m.Ctx, actor, s.id, s.memberID(v.person)))
	case setQuota:
		p, err := m.UpdateProject(m.Ctx, actor, s.id, projects.ProjectInput{Name: s.name, Quota: v.amount.resources().Input(), Version: v.version})
		return moved(0, p.Version, err)
	case read:
		p, err := m.Project(m.Ctx, actor, s.id)
		return outcome{version: p.Version, quota: amountOf(p.Quota), allocated: amountOf(p.Allocated), inUse: amountOf(p.InUse), members: p.Members, live: p.ActiveWorkspaces}, err
	default:
		return m.doWorkspace(s, v)
	}
}

func (m *busyWorld) doWorkspace(s *busyProject, v move) (outcome, error) {
	switch v.what {
	case launch:
		r := v.amount.resources()
		w, err := m.launches.Launch(m.Ctx, m.persons[v.person], workspaces.LaunchInput{ProjectID: s.id, EnvironmentID: m.env, Name: title(v.lease),
			Request: models.LaunchParameters{CPUMilli: &r.CPUMilli, MemoryMiB: &r.MemoryMiB}})
		return moved(w.ID, 0, err)
	case stop:
		_, err := m.launches.Stop(m.Ctx, m.persons[v.person], v.workspace)
		return ended(err)
	default:
		return ended(m.end(v.workspace))
	}
}

// end is what the reconciler does when a workspace is gone: without the
// project's lock, and again when somebody else was faster.
func (m *busyWorld) end(id int64) error {
	for {
		err := m.Store.InTx(m.Ctx, func(q *store.Queries) error {
			w, err := q.Workspace(store.AllProjects, id)
			if err != nil {
				return err
			}
			if w.State.Ended() {
				return models.Conflict("It has ended.")
			}
			from, now := w.State, q.Now()
			w.State, w.EndedAt = models.StateStopped, &now
			if err := q.Transition(&w, from, models.Say("Stopped.")); err != nil {
				return err
			}
			return m.Pool.Release(q, w.HolderID)
		})
		if !errors.Is(err, store.ErrChanged) {
			return err
		}
	}
}

func (s *busyProject) memberID(person int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.members[person].id
}

// learn keeps what a move that was done has told, as people remember what
// they saw: perhaps it is past already.
func (s *busyProject) learn(v move, o outcome) {
	if o.refused != "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch v.what {
	case createRole, updateRole:
		s.model.roles[v.title] = modelRole{id: o.id, version: o.version}
	case addMember, updateMember:
		s.model.members[v.person] = modelMember{id: o.id, version: o.version, present: true}
	case removeMember:
		s.model.members[v.person].present = false
	case launch:
		s.model.holds[v.person][v.lease] = modelWorkspace{id: o.id}
	case setQuota, read:
		s.model.version = o.version
	}
}

// propose picks a move that somebody might make now: mostly of things that
// exist, now and then from an old version.
func (s *busyProject) propose(r chance) move {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := move{what: moves[r.IntN(len(moves))], person: r.IntN(people), title: r.IntN(titles), lease: r.IntN(seats)}
	mind := r.IntN(4) == 0
	switch v.what {
	case launch:
		if !s.model.members[v.person].present && r.IntN(4) > 0 {
			v.what = addMember
		}
	case updateMember, removeMember:
		if s.model.members[v.person].id == 0 {
			v.what = addMember
		}
	case stop, end:
		if s.model.holds[v.person][v.lease].id == 0 {
			v.what = launch
		}
	case updateRole, deleteRole:
		if s.model.roles[v.title].id == 0 {
			v.what = createRole
		}
	}
	v.role, v.workspace = s.model.roles[v.title].id, s.model.holds[v.person][v.lease].id
	switch {
	case v.what == setQuota:
		v.amount = amount{8 + int64(r.IntN(16)), 12 + int64(r.IntN(24))}
	case v.what == launch:
		v.amount = amount{1 + int64(r.IntN(3)), 1 + int64(r.IntN(3))}
	case v.what == createRole, v.what == updateRole:
		v.amount = amount{int64(r.IntN(7)), int64(r.IntN(10))}
		if r.IntN(8) == 0 {
			v.amount.cpu *= 4 // more than most quotas
		}
	}
	switch {
	case mind && v.what == setQuota:
		v.version = s.model.version
	case mind && v.what == updateRole:
		v.version = s.model.roles[v.title].version
	case mind && v.what == updateMember:
		v.version = s.model.members[v.person].version
	}
	return v
}

// moves as often as they are made.
var moves = func() (list []string) {
	for _, m := range []struct {
		what string
		n    int
	}{{launch, 24}, {end, 16}, {addMember, 14}, {removeMember, 8}, {updateMember, 8}, {updateRole, 8}, {read, 8}, {stop, 6}, {setQuota, 6}, {createRole, 3}, {deleteRole, 3}} {
		list = append(list, slices.Repeat([]string{m.what}, m.n)...)
	}
	return list
}()

// chance decides what is left open: at random, or by rapid.
type chance interface{ IntN(n int) int }

func (v move) String() string {
	return fmt.Sprintf("%s person=%d title=%d role=%d seat=%d workspace=%d %v version=%d", v.what, v.person, v.title, v.role, v.lease, v.workspace, v.amount, v.version)
}
