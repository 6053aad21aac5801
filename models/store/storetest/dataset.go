package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
)

// Dataset is the size of a test database.
type Dataset struct {
	People, Projects, Workspaces, Requests, Notifications, Audit int
	// FocusRows is the number of rows that belong to the focus.
	FocusRows int
}

// SmallDataset and LargeDataset are a small and a large data set.
var (
	SmallDataset = Dataset{People: 400, Projects: 70, Workspaces: 120, Requests: 700, Notifications: 300, Audit: 300, FocusRows: 55}
	LargeDataset = Dataset{People: 10_000, Projects: 1000, Workspaces: 5000, Requests: 1200, Notifications: 4000, Audit: 100_000,
		FocusRows: 60}
)

// Focus is the user and the project that a test looks at. Their rows must
// exist.
type Focus struct{ Project, Role, User, Environment int64 }

// builder fills a database with the types and queries of models, so that new
// columns are included.
type builder struct {
	testing.TB
	store *store.Store
	Dataset
	Focus
	rand     *rand.Rand
	people   []int64
	projects []int64
	members  []models.Member
}

// Build fills a store with rows around focus. They use no resources: limits
// are 0, and workspaces have ended.
func (c Dataset) Build(t testing.TB, s *store.Store, focus Focus) {
	t.Helper()
	b := &builder{TB: t, store: s, Dataset: c, Focus: focus, rand: rand.New(rand.NewPCG(1, 2))}
	b.addPeople()
	b.addProjects()
	b.addFocusMembers()
	b.addWorkspaces()
	b.addRequests()
	b.addNotifications()
	b.addAudit()
	if err := Analyze(s); err != nil {
		t.Fatal(err)
	}
}

// Analyze has PostgreSQL collect the statistics that it would soon collect by itself. SQLite does
// not, so its plans are those without.
func Analyze(s *store.Store) error {
	db, err := s.SQL()
	if err == nil && s.Dialect() == "postgres" {
		_, err = db.Exec("ANALYZE")
	}
	return err
}

// rows calls add n times, in batches of transactions.
func (b *builder) rows(n int, add func(q *store.Queries, i int) error) {
	b.Helper()
	const each = 1000
	for from := 0; from < n; from += each {
		InTx(b, b.store, func(q *store.Queries) error {
			for i := from; i < min(from+each, n); i++ {
				if err := add(q, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func (b *builder) one(ids []int64) int64 { return ids[b.rand.IntN(len(ids))] }

// ago is a random time in the last year.
func (b *builder) ago() time.Time {
	return b.store.Now().Add(-time.Duration(b.rand.Int64N(int64(365 * 24 * time.Hour)))).Truncate(time.Microsecond)
}

func (b *builder) addPeople() {
	var departments []int64
	b.rows(b.FocusRows, func(q *store.Queries, i int) error {
		d := models.Department{Name: fmt.Sprint("Department ", i), Version: 1, CreatedAt: b.ago()}
		err := q.CreateDepartment(&d)
		departments = append(departments, d.ID)
		return err
	})
	b.rows(b.People, func(q *store.Queries, i int) error {
		u := models.User{Email: fmt.Sprintf("citizen%d@example.org", i), Name: fmt.Sprint("Citizen ", i),
			DepartmentID:      &departments[i%len(departments)],
			SessionGeneration: 1, Version: 1, CreatedAt: b.ago()}
		err := q.CreateUser(&u)
		b.people = append(b.people, u.ID)
		return err
	})
}

func (b *builder) addProjects() {
	b.rows(b.Projects, func(q *store.Queries, i int) error {
		p := models.Project{Name: fmt.Sprint("Project ", i), Quota: models.Resources{GPUCores: 400, CPUMilli: 64_000, MemoryMiB: 1 << 18},
			StartsAt: b.ago(), Priority: models.DefaultPriority, Version: 1, CreatedAt: b.ago()}
		if err := q.CreateProject(&p); err != nil {
			return err
		}
		b.projects = append(b.projects, p.ID)
		r := models.Role{ProjectID: p.ID, Name: "engineer", Permission: models.PermissionMember, Version: 1, CreatedAt: p.CreatedAt}
		if err := q.CreateRole(&r); err != nil {
			return err
		}
		for k := range min(12, len(b.people)) {
			if err := b.addMember(q, r, b.people[(i*12+k*7)%len(b.people)]); err != nil {
				return err
			}
		}
		if i < b.FocusRows {
			return b.addMember(q, r, b.User)
		}
		return nil
	})
}

func (b *builder) addMember(q *store.Queries, r models.Role, user int64) error {
	m := models.Member{ProjectID: r.ProjectID, UserID: user, RoleID: r.ID, Version: 1, CreatedAt: r.CreatedAt}
	err := q.CreateMember(&m)
	if err == nil && user != b.User {
		b.members = append(b.members, m)
	}
	return err
}

// addFocusMembers adds roles and members to the project of the focus.
func (b *builder) addFocusMembers() {
	b.rows(b.FocusRows, func(q *store.Queries, i int) error {
		r := models.Role{ProjectID: b.Project, Name: fmt.Sprint("role ", i), Permission: models.PermissionMember, Version: 1, CreatedAt: b.ago()}
		if err := q.CreateRole(&r); err != nil {
			return err
		}
		for k := range min(5, len(b.people)/b.FocusRows) {
			if err := b.addMember(q, r, b.people[i*5+k]); err != nil {
				return err
			}
		}
		return nil
	})
}

// addWorkspaces adds ended workspaces, including some of the focus.
func (b *builder) addWorkspaces() {
	var mine models.Member
	InTx(b, b.store, func(q *store.Queries) (err error) {
		mine, err = q.Membership(b.Project, b.User)
		return err
	})
	b.rows(b.Workspaces+b.FocusRows*5, func(q *store.Queries, i int) error {
		m := mine
		if i < b.Workspaces {
			m = b.members[b.rand.IntN(len(b.members))]
		}
		began := b.ago()
		ended := began.Add(time.Hour)
		w := models.Workspace{ProjectID: m.ProjectID, MemberID: m.ID, UserID: m.UserID, EnvironmentID: b.Environment,
			Name:  fmt.Sprint("notebook ", i),
			State: models.StateStopped, Demand: models.Demand{GPUs: 1, Cores: 20, CPUMilli: 1000, MemoryMiB: 1024}, Version: 1, RequestedAt: began,
			StartedAt: &began, EndedAt: &ended}
		if err := q.CreateWorkspace(&w, models.StateStopped.Words()); err != nil {
			return err
		}
		if err := q.CreateShare(&models.Share{DeviceID: 1, HolderID: w.HolderID, ProjectID: w.ProjectID, UserID: w.UserID, Cores: 20,
			MemoryMiB:   1024,
			Enforcement: models.EnforcedAdvisory, From: began, Until: &ended}); err != nil {
			return err
		}
		return q.CreateDecisionRecord(&models.DecisionRecord{At: began, ProjectID: w.ProjectID, HolderID: &w.HolderID, UserID: w.UserID,
			Outcome: models.OutcomeGranted, Demand: models.StateRequested.Words(), GPUs: 1, Cores: 20, Explanation: models.StateRunning.Words()})
	})
}

func (b *builder) addRequests() {
	b.rows(b.Requests, func(q *store.Queries, i int) error {
		project, who := b.one(b.projects), b.one(b.people)
		if i%10 == 0 {
			project = b.Project
		}
		r := models.QuotaRequest{Kind: models.RequestQuota, ProjectID: &project, RequesterID: who, Reason: "We need more.",
			State: models.RequestPending,
			Requested: models.Requested{Quota: &models.QuotaSpec{ProjectID: project,
				Quota: models.Resources{GPUCores: 500}.Input()}}, Version: 1, CreatedAt: b.ago()}
		if i%3 > 0 {
			at := b.store.Now()
			r.State, r.DeciderID, r.DecidedAt, r.DecisionReason = models.RequestRefused, &b.people[0], &at, "No."
		}
		return q.CreateRequest(&r)
	})
}

func (b *builder) addNotifications() {
	b.rows(b.Notifications, func(q *store.Queries, i int) error {
		to := []int64{b.one(b.people)}
		if i%4 == 0 {
			to = append(to, b.User)
		}
		return q.Notify(to, models.Notification{Kind: "request.refused", Text: models.StateFailed.Words(), Link: "/requests"})
	})
}

// addAudit adds audit entries.
func (b *builder) addAudit() {
	b.rows(b.Audit, func(q *store.Queries, i int) error {
		project := b.one(b.projects)
		return q.PutAudit(models.AuditEntry{At: b.store.Now(), Actor: fmt.Sprintf("citizen%d@example.org", i%100), Action: "update",
			Object:   "project",
			ObjectID: project, ProjectID: &project, Before: `{"name":"a"}`, After: `{"name":"b"}`})
	})
}
