package workspaces_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/projects"
	"weir/workspaces"
)

func TestBadLaunches(t *testing.T) {
	minus, huge := int64(-1), int64(1<<63-1)
	long := strings.Repeat("x", 10_000)
	each(t, func(t *testing.T, b *world) {
		other := b.addProject(t, "speech", plenty)
		gone := b.goneInstallation(t)
		for _, c := range []struct {
			name  string
			in    workspaces.LaunchInput
			kind  models.Kind
			field string
		}{
			{"negative GPUs", b.ask("a", models.LaunchParameters{GPUs: &minus}), models.KindInvalid, "gpus"},
			{"overflowing CPU", b.ask("a", models.LaunchParameters{CPUMilli: &huge}), models.KindInvalid, "cpu_milli"},
			{"overflowing GPUs", b.ask("a", gpu(huge, huge)), models.KindInvalid, "gpus"},
			{"long name", b.ask(long, models.LaunchParameters{}), models.KindInvalid, "name"},
			{"control in name", b.ask("a\x00b", models.LaunchParameters{}), models.KindInvalid, "name"},
			{"broken name", b.ask("\xff", models.LaunchParameters{}), models.KindInvalid, "name"},
			{"reserved variable", b.ask("a", models.LaunchParameters{Env: map[string]string{"WEIR_TOKEN": "x"}}), models.KindInvalid, "env"},
			{"unknown when_insufficient", workspaces.LaunchInput{ProjectID: b.project.ID, WhenInsufficient: "perhaps"}, models.KindInvalid, "when_insufficient"},
			{"malformed version constraint", workspaces.LaunchInput{ProjectID: b.project.ID, VersionConstraints: "!"}, models.KindInvalid, "version_constraints"},
			{"package that no environment has", workspaces.LaunchInput{ProjectID: b.project.ID, VersionConstraints: "cobol, python"}, models.KindInvalid, "version_constraints"},
			{"version constraint that nothing satisfies", workspaces.LaunchInput{ProjectID: b.project.ID, VersionConstraints: "cobol"}, models.KindInvalid, "version_constraints"},
			{"no such environment", workspaces.LaunchInput{ProjectID: b.project.ID, EnvironmentID: 999}, models.KindInvalid, "environment_id"},
			{"negative environment", workspaces.LaunchInput{ProjectID: b.project.ID, EnvironmentID: -1}, models.KindInvalid, "environment_id"},
			{"unavailable environment", workspaces.LaunchInput{ProjectID: b.project.ID, EnvironmentID: gone.ID}, models.KindInvalid, "environment_id"},
			{"above the limit", b.ask("a", gpu(3, 100)), models.KindInvalid, "cores"},
			{"foreign project", workspaces.LaunchInput{ProjectID: other.ID}, models.KindNotFound, ""},
			{"no project", workspaces.LaunchInput{ProjectID: 999}, models.KindNotFound, ""},
			{"negative project", workspaces.LaunchInput{ProjectID: -1}, models.KindNotFound, ""},
			{"empty pool", b.ask("a", gpu(1, 10)), models.KindNoCapacity, "gpus"},
		} {
			_, err := b.Launch(b.ctx, b.actor, c.in)
			var e *models.Error
			if !errors.As(err, &e) || e.Kind != c.kind || c.field != "" && (len(e.Fields) == 0 || e.Fields[0].Name != c.field) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		cobol := workspaces.LaunchInput{ProjectID: b.project.ID, VersionConstraints: "cobol"}
		want(t, second(b.Launch(b.ctx, b.actor, cobol)), models.KindInvalid, "no environment has cobol")
		want(t, second(b.Launch(b.ctx, policies.Actor{}, b.ask("a", models.LaunchParameters{}))), models.KindUnauthenticated)
		want(t, second(b.Launch(b.ctx, b.root, b.ask("a", models.LaunchParameters{}))), models.KindForbidden, "not a member")
		if list, err := b.List(b.ctx, b.root, store.WorkspaceFilter{}, store.Page{}); err != nil || len(list) != 0 {
			t.Errorf("%d workspaces came of it, %v", len(list), err)
		}
	})
}

// A role without GPU memory gives no GPU memory, not even in proportion.
func TestNoGPUMemoryBeyondTheLimit(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		none := b.addRole(t, b.project, "none", models.Resources{GPUCores: 100, CPUMilli: 4000, MemoryMiB: 8192})
		_, actor := b.addMember(t, none)
		want(t, second(b.Launch(b.ctx, actor, b.ask("a", gpu(1, 50)))), models.KindNoCapacity, "0 for: GPU memory", "managers can change the limit")
		some := b.addRole(t, b.project, "some", models.Resources{GPUCores: 100, GPUMemoryMiB: 10_000, CPUMilli: 4000, MemoryMiB: 8192})
		_, actor = b.addMember(t, some)
		list, err := b.Available(b.ctx, actor, b.project.ID)
		i := slices.IndexFunc(list, func(a workspaces.SizeAvailability) bool { return a.Demand.GPUs == 1 && a.Demand.Cores == 50 })
		if err != nil || i < 0 || !list[i].AvailableNow() || list[i].Demand.GPUMemoryMiB != 10_000 {
			t.Errorf("available: %+v, %v", list, err)
		}
		if w, err := b.Launch(b.ctx, actor, b.ask("a", gpu(1, 50))); err != nil || w.Demand.GPUMemoryMiB != 10_000 {
			t.Errorf("%+v, %v", w.Demand, err)
		}
	})
}

func TestWhenInsufficient(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		b.launch(t, "first", gpu(1, 70))
		ask := func(cores int64, when string) (models.Workspace, error) {
			in := b.ask(fmt.Sprint(when, cores), gpu(1, cores))
			in.WhenInsufficient = when
			return b.Launch(b.ctx, b.actor, in)
		}
		_, err := ask(50, workspaces.WhenInsufficientRefuse)
		want(t, err, models.KindNoCapacity, "30 of 50")
		var insufficient *workspaces.Insufficient
		if !errors.As(err, &insufficient) || insufficient.Decision.Outcome != models.OutcomePartial || insufficient.Decision.Fewer.Cores != 30 {
			t.Errorf("%+v", err)
		}
		decisions, err := b.store.Read(b.ctx).DecisionsIn(store.AllProjects, 10)
		if err != nil || len(decisions) != 2 || decisions[0].Outcome != models.OutcomeRefused || decisions[0].ObjectID != nil {
			t.Errorf("decisions %+v, %v", decisions, err)
		}
		needy := b.environment(t, workspaces.EnvironmentInput{Name: "test bed of great need", Command: []string{"/bin/sleep", "600"}, Minimum: models.Minimum{GPUs: 1, Cores: 40}})
		_, err = b.Launch(b.ctx, b.actor, workspaces.LaunchInput{ProjectID: b.project.ID, EnvironmentID: needy.ID, Request: gpu(1, 50), WhenInsufficient: workspaces.WhenInsufficientFewer})
		want(t, err, models.KindNoCapacity) // 30 are of no use to it
		w, err := ask(50, workspaces.WhenInsufficientFewer)
		if err != nil || w.State != models.StateStarting || w.Demand.Cores != 30 || b.shares(t) != 100 {
			t.Errorf("%+v, %v, %d cores", w, err, b.shares(t))
		}
		for _, p := range w.Target {
			if p.Name == "cores" && (p.Value != "30" || p.Origin != workspaces.OriginPlatform) {
				t.Errorf("target %+v", p)
			}
		}
		want(t, second(ask(20, workspaces.WhenInsufficientFewer)), models.KindNoCapacity)
		if w, err := ask(20, workspaces.WhenInsufficientWait); err != nil || w.State != models.StateQueued {
			t.Errorf("%+v, %v", w, err)
		}
		in := b.ask("never", models.LaunchParameters{})
		in.Request, in.WhenInsufficient = gpu(2, 10), workspaces.WhenInsufficientWait
		want(t, second(b.Launch(b.ctx, b.actor, in)), models.KindNoCapacity, "The pool cannot satisfy this request") // waiting would not help
	})
}

// A launch that is refused writes nothing but the record of what was demanded.
func TestRefusedLaunchWritesNothing(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		b.launch(t, "first", gpu(1, 70))
		var recording atomic.Bool
		var written []string
		if err := b.store.Watch(func(s store.Statement) {
			if recording.Load() && !strings.HasPrefix(s.SQL, "SELECT") {
				written = append(written, s.SQL)
			}
		}); err != nil {
			t.Fatal(err)
		}
		refuse := func(kind models.Kind, request models.LaunchParameters) {
			written = nil
			recording.Store(true)
			_, err := b.Launch(b.ctx, b.actor, b.ask("refused", request))
			recording.Store(false)
			want(t, err, kind)
		}
		refuse(models.KindNoCapacity, gpu(1, 50))
		if len(written) != 1 || !strings.HasPrefix(written[0], `INSERT INTO "decisions"`) && !strings.HasPrefix(written[0], "INSERT INTO `decisions`") {
			t.Errorf("a launch that the pool cannot satisfy wrote %q", written)
		}
		if refuse(models.KindInvalid, gpu(1, 500)); len(written) != 0 {
			t.Errorf("an invalid launch wrote %q", written)
		}
	})
}

func TestALaunchSentTwiceIsOne(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		var kinds storetest.ErrorCounts
		storetest.Concurrently(20, func(int) {
			_, err := b.Launch(b.ctx, b.actor, b.ask("same", models.LaunchParameters{CPUMilli: new(int64(10)), MemoryMiB: new(int64(64))}))
			kinds.Add(err)
		})
		kinds.Want(t, 1, models.KindConflict, 19)
	})
}

// Many members launch at once what together exceeds roles, the project's
// quota and the devices: as many start as fit everywhere.
func TestConcurrentLaunchesFillExactly(t *testing.T) {
	one := models.LaunchParameters{CPUMilli: new(int64(1000)), MemoryMiB: new(int64(64)), GPUs: new(int64(1)), Cores: new(int64(25)), GPUMemoryMiB: new(int64(1000))}
	for _, c := range []struct {
		name      string
		quota     int64 // CPU of the project; the role's is 3 for each of 10 members
		gpus      int
		admitted  int
		gpuShares int64
	}{{"roles", 100_000, 10, 30, 750}, {"quota", 30_000, 10, 30, 750}, {"devices", 100_000, 2, 8, 200}} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, b *world) {
				b.gpus(t, c.gpus)
				p := b.addProject(t, "race", models.Resources{GPUCores: 1e4, GPUMemoryMiB: 1e6, CPUMilli: c.quota, MemoryMiB: 1e6})
				r := b.addRole(t, p, "racer", models.Resources{GPUCores: 1000, GPUMemoryMiB: 1e5, CPUMilli: 3000, MemoryMiB: 1e5})
				var actors []policies.Actor
				for range 10 {
					_, a := b.addMember(t, r)
					actors = append(actors, a)
				}
				var kinds storetest.ErrorCounts
				storetest.Concurrently(50, func(i int) {
					_, err := b.Launch(b.ctx, actors[i%10], workspaces.LaunchInput{ProjectID: p.ID, Name: string(rune('a' + i/10)), Request: one})
					kinds.Add(err)
				})
				kinds.Want(t, c.admitted, models.KindNoCapacity, 50-c.admitted)
				if got := b.shares(t); got != c.gpuShares {
					t.Errorf("%d cores are in use, want %d", got, c.gpuShares)
				}
				b.keepsRules(t)
			})
		})
	}
}

// keepsRules holds rules 2 and 3 against sums made in SQL.
func (b *world) keepsRules(t *testing.T) {
	t.Helper()
	db, err := b.store.SQL()
	if err != nil {
		t.Fatal(err)
	}
	for rule, sql := range map[string]string{
		"2, members": `SELECT COUNT(*) FROM members m JOIN roles r ON r.id = m.role_id WHERE r.limit_cpu_milli <
			(SELECT COALESCE(SUM(cpu_milli), 0) FROM holders h WHERE h.member_id = m.id AND h.phase IN ('in_use', 'ending'))`,
		"2, projects": `SELECT COUNT(*) FROM projects p WHERE p.quota_gpu_cores <
			(SELECT COALESCE(SUM(gpus * cores), 0) FROM holders h WHERE h.project_id = p.id AND h.phase IN ('in_use', 'ending'))`,
		"3": `SELECT COUNT(*) FROM devices d WHERE
			(SELECT COALESCE(SUM(cores), 0) FROM shares s WHERE s.device_id = d.id AND s.until_at IS NULL) > 100 OR
			(SELECT COALESCE(SUM(memory_mib), 0) FROM shares s WHERE s.device_id = d.id AND s.until_at IS NULL) > d.memory_mib`,
	} {
		var broken int
		if err := db.QueryRow(sql).Scan(&broken); err != nil || broken > 0 {
			t.Errorf("rule %s is broken %d times, %v", rule, broken, err)
		}
	}
}

func TestOpenRedeemAdmit(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := b.launch(t, "a", models.LaunchParameters{Path: new("/lab")})
		other := b.launch(t, "b", models.LaunchParameters{})
		want(t, second(b.Open(b.ctx, b.actor, w.ID, workspaces.OpenInput{})), models.KindConflict, "starting")
		want(t, second(b.AdmitActor(b.ctx, b.actor, w.ID)), models.KindConflict, "starting")
		b.until(t, w.ID, models.StateRunning)
		b.until(t, other.ID, models.StateRunning)
		_, mate := b.addMember(t, b.role)
		stranger := policies.Actor{User: storetest.User(t, b.store, "stranger@example.org", false), At: b.store.Now()}
		want(t, second(b.Open(b.ctx, mate, w.ID, workspaces.OpenInput{})), models.KindForbidden)
		want(t, second(b.Open(b.ctx, b.root, w.ID, workspaces.OpenInput{})), models.KindForbidden)
		want(t, second(b.Open(b.ctx, stranger, w.ID, workspaces.OpenInput{})), models.KindNotFound)
		want(t, second(b.Open(b.ctx, policies.Actor{}, w.ID, workspaces.OpenInput{})), models.KindUnauthenticated)
		want(t, second(b.Stop(b.ctx, mate, w.ID)), models.KindForbidden)
		want(t, second(b.Stop(b.ctx, stranger, w.ID)), models.KindNotFound)
		want(t, second(b.AdmitActor(b.ctx, mate, w.ID)), models.KindNotFound)
		want(t, second(b.AdmitActor(b.ctx, policies.Actor{}, w.ID)), models.KindUnauthenticated)
		reader := b.actor
		reader.Scopes = []models.TokenScope{models.ScopeRead, models.ScopeProject, models.ScopeAdmin}
		want(t, second(b.Open(b.ctx, reader, w.ID, workspaces.OpenInput{})), models.KindForbidden, "launch")
		want(t, second(b.AdmitActor(b.ctx, reader, w.ID)), models.KindForbidden, "launch")
		want(t, second(b.Stop(b.ctx, reader, w.ID)), models.KindForbidden, "launch")
		storetest.InTx(t, b.store, func(q *store.Queries) error {
			return q.PutSession(models.Session{Token: "session", Data: []byte{1}, ExpiresAt: q.Now().Add(time.Hour)})
		})
		open := func() string {
			t.Helper()
			token, err := b.Open(b.ctx, b.actor, w.ID, workspaces.OpenInput{})
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		token := open()
		var visit models.VisitCookie
		var kinds storetest.ErrorCounts
		storetest.Concurrently(20, func(int) {
			v, err := b.Redeem(b.ctx, w.ID, token)
			if kinds.Add(err); err == nil {
				visit = v
			}
		})
		kinds.Want(t, 1, models.KindNotFound, 19)
		if visit.Path != "/lab" {
			t.Errorf("path %q", visit.Path)
		}
		want(t, second(b.Redeem(b.ctx, other.ID, open())), models.KindNotFound) // of another workspace
		for _, wrong := range []string{"", "wrong", "\x00", strings.Repeat("x", 10_000), visit.Secret} {
			want(t, second(b.Redeem(b.ctx, w.ID, wrong)), models.KindNotFound)
		}
		late := open()
		b.clock.Advance(30 * time.Second)
		want(t, second(b.Redeem(b.ctx, w.ID, late)), models.KindNotFound)
		if a, err := b.AdmitVisit(b.ctx, w.ID, visit.Secret); err != nil || a.Secret != b.row(t, w.ID).Secret || a.Endpoint.Address == "" {
			t.Errorf("%+v, %v", a, err)
		}
		want(t, second(b.AdmitVisit(b.ctx, other.ID, visit.Secret)), models.KindUnauthenticated)
		want(t, second(b.AdmitVisit(b.ctx, w.ID, token)), models.KindUnauthenticated)
		left, err := b.Redeem(b.ctx, w.ID, open())
		if err := errors.Join(err, b.Leave(b.ctx, other.ID, left.Secret), b.Leave(b.ctx, w.ID, "wrong"),
			second(b.AdmitVisit(b.ctx, w.ID, left.Secret)), b.Leave(b.ctx, w.ID, left.Secret)); err != nil {
			t.Error(err)
		}
		want(t, second(b.AdmitVisit(b.ctx, w.ID, left.Secret)), models.KindUnauthenticated)
		if err := second(b.AdmitVisit(b.ctx, w.ID, visit.Secret)); err != nil {
			t.Errorf("the other browser: %v", err)
		}
		b.clock.Advance(time.Hour) // the portal's session has ended
		want(t, second(b.AdmitVisit(b.ctx, w.ID, visit.Secret)), models.KindUnauthenticated)
	})
}

// Each of these ends a visit at once, before any reconciler looks.
func TestVisitsEndWithTheRight(t *testing.T) {
	for name, end := range map[string]func(b *world, q *store.Queries) error{
		"signed out": func(b *world, q *store.Queries) error { return q.DeleteSession("session") },
		"new password": func(b *world, q *store.Queries) error {
			u := b.actor.User
			u.SessionGeneration++
			return q.UpdateUser(&u)
		},
		"disabled": func(b *world, q *store.Queries) error {
			u := b.actor.User
			u.Disabled = true
			return q.UpdateUser(&u)
		},
		"removed": func(b *world, q *store.Queries) error {
			m, now := b.member, q.Now()
			m.RemovedAt = &now
			return q.UpdateMember(&m)
		},
		"the role may only look": func(b *world, q *store.Queries) error {
			role := b.role
			role.Permission = models.PermissionViewer
			return q.UpdateRole(&role)
		},
		"another role may only look": func(b *world, q *store.Queries) error {
			viewer := models.Role{ProjectID: b.role.ProjectID, Name: "viewer", Permission: models.PermissionViewer}
			if err := q.CreateRole(&viewer); err != nil {
				return err
			}
			m := b.member
			m.RoleID = viewer.ID
			return q.UpdateMember(&m)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newWorld(t, storetest.Open(t, "sqlite"))
			w := b.until(t, b.launch(t, "a", models.LaunchParameters{}).ID, models.StateRunning)
			storetest.InTx(t, b.store, func(q *store.Queries) error {
				return q.PutSession(models.Session{Token: "session", Data: []byte{1}, ExpiresAt: q.Now().Add(time.Hour)})
			})
			token, err1 := b.Open(b.ctx, b.actor, w.ID, workspaces.OpenInput{})
			visit, err2 := b.Redeem(b.ctx, w.ID, token)
			_, err3 := b.AdmitVisit(b.ctx, w.ID, visit.Secret)
			if err := errors.Join(err1, err2, err3); err != nil {
				t.Fatal(err)
			}
			storetest.InTx(t, b.store, func(q *store.Queries) error { return end(b, q) })
			want(t, second(b.AdmitVisit(b.ctx, w.ID, visit.Secret)), models.KindUnauthenticated)
		})
	}
}

// What somebody was admitted to with rights that have ended since is not admitted again
// from a cache.
func TestAdmissionIsByPresentRights(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := b.until(t, b.launch(t, "a", models.LaunchParameters{}).ID, models.StateRunning)
		before := b.actor
		before.Session = "token"
		if a, err := b.AdmitActor(b.ctx, before, w.ID); err != nil || a.Session != "token" {
			t.Fatalf("%+v, %v", a, err)
		}
		storetest.InTx(t, b.store, func(q *store.Queries) error {
			role := b.role
			role.Permission = models.PermissionViewer
			return q.UpdateRole(&role)
		})
		_ = second(b.AdmitActor(b.ctx, before, w.ID)) // a request that began before
		members, err := b.store.Read(b.ctx).MembershipsOf(b.actor.User.ID, b.store.Now())
		if err != nil {
			t.Fatal(err)
		}
		now := before
		now.Grants = policies.GrantsOf(members)
		want(t, second(b.AdmitActor(b.ctx, now, w.ID)), models.KindNotFound)
	})
}

func TestPreviewSaysWhatALaunchWould(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		v, err := b.Preview(b.ctx, b.actor, b.ask("a", gpu(1, 50)))
		if err != nil || v.Rejection != nil || v.Environment.ID != b.env.ID || v.Decision.Outcome != models.OutcomeGranted || v.Target.Demand.GPUMemoryMiB != 40_000 {
			t.Errorf("%+v, %v", v, err)
		}
		v, err = b.Preview(b.ctx, b.actor, b.ask("a", gpu(9, 50)))
		if err != nil || v.Rejection == nil || v.Use.Limit != b.role.Limit {
			t.Errorf("%+v, %v", v, err)
		}
		if b.shares(t) != 0 {
			t.Error("a preview has taken shares")
		}
		want(t, second(b.Preview(b.ctx, b.root, b.ask("a", gpu(1, 1)))), models.KindForbidden)
	})
}

func TestThePeriodOfUse(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		starts := b.store.Now().Add(time.Hour)
		_, err := b.projects.UpdateProject(b.ctx, b.root, b.project.ID, projects.ProjectInput{Name: "vision", Quota: plenty.Input(), StartsAt: &starts})
		if err != nil {
			t.Fatal(err)
		}
		want(t, second(b.Launch(b.ctx, b.actor, b.ask("a", models.LaunchParameters{}))), models.KindForbidden)
		b.clock.Advance(time.Hour)
		b.launch(t, "a", models.LaunchParameters{})
	})
}

// Only a membership gives resources, also to an administrator, and only until it ends.
func TestLaunchAfterTheMembership(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		end := b.store.Now().Add(time.Hour)
		_, err := b.projects.AddMember(b.ctx, b.root, b.project.ID, projects.MemberInput{Email: b.root.User.Email, RoleID: b.role.ID, Until: &end})
		if err != nil {
			t.Fatal(err)
		}
		b.clock.Advance(time.Hour - time.Microsecond)
		if _, err := b.Launch(b.ctx, b.root, b.ask("a", models.LaunchParameters{})); err != nil {
			t.Fatal(err)
		}
		b.clock.Advance(time.Microsecond)
		want(t, second(b.Launch(b.ctx, b.root, b.ask("b", models.LaunchParameters{}))), models.KindForbidden, "not a member")
		want(t, second(b.Preview(b.ctx, b.root, b.ask("b", models.LaunchParameters{}))), models.KindForbidden, "not a member")
	})
}

// A member has at most 20 workspaces in a project at a time, also in the queue.
func TestMostWorkspacesOfAMember(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		b.launch(t, "a", gpu(1, 100))
		waits := b.queue(t, b.actor, "b")
		for i := range 18 {
			b.launch(t, fmt.Sprint(i), models.LaunchParameters{CPUMilli: new(int64(100)), MemoryMiB: new(int64(100))})
		}
		small := b.ask("c", models.LaunchParameters{CPUMilli: new(int64(100)), MemoryMiB: new(int64(100))})
		want(t, second(b.Launch(b.ctx, b.actor, small)), models.KindNoCapacity, "the maximum is 20")
		if _, err := b.Stop(b.ctx, b.actor, waits.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Launch(b.ctx, b.actor, small); err != nil {
			t.Error(err)
		}
	})
}
