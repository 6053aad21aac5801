package projects_test

import (
	"errors"
	"fmt"
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

// rows makes records of cells in the order of the named columns.
func rows(columns string, lines ...string) (list []models.Record) {
	names := strings.Split(columns, ",")
	for i, line := range lines {
		r := models.Record{Line: i + 2, Cells: map[string]string{}}
		for j, cell := range strings.Split(line, ",") {
			r.Cells[names[j]] = cell
		}
		list = append(list, r)
	}
	return list
}

// outcomes words a report: "2 added; 3 refused role".
func outcomes(r models.ImportReport) string {
	var list []string
	for _, row := range r.Rows {
		text := fmt.Sprint(row.Line, " ", row.Outcome)
		for _, c := range row.Changes {
			text += fmt.Sprintf(" %s:%s>%s", c.Column, c.From, c.To)
		}
		for _, f := range row.Refusals {
			text += " " + f.Name
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

func (o *world) dryRun(t *testing.T, project int64, records []models.Record) models.ImportReport {
	t.Helper()
	r, err := o.ImportMembers(o.Ctx, o.Root, project, models.Import{Records: records, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// exported is the table of a project's members, as it would be downloaded.
func (o *world) exported(t *testing.T, project int64) (list []models.Record) {
	t.Helper()
	members, err := o.Members(o.Ctx, o.Root, project, store.Page{Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range members {
		r := models.Record{Line: i + 2, Cells: map[string]string{}}
		for j, cell := range projects.MemberCells(m) {
			r.Cells[projects.MemberColumns[j]] = cell
		}
		list = append(list, r)
	}
	return list
}

func TestImportMembers(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(100))
		r := o.NewRole(t, p.ID, "engineer", "member", pooltest.Cores(30))
		o.NewRole(t, p.ID, "lead", "manager", pooltest.Cores(40))
		m, u := o.NewMember(t, r)
		ann, bob, eve := o.NewPerson(t), o.NewPerson(t), o.NewPerson(t)
		today := models.Day(o.Store.Now()).Format(time.DateOnly)
		table := rows("email,role,joined,until", u.Email+",lead,,", ann.Email+",engineer,2020-02-29,2100-01-01", bob.Email+",engineer,,")
		dry := o.dryRun(t, p.ID, table)
		want := "2 changed role:engineer>lead; 3 added role:>engineer joined:>2020-02-29 until:>2100-01-01; 4 added role:>engineer joined:>" + today
		if got := outcomes(dry); got != want || dry.Done {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if list := o.exported(t, p.ID); len(list) != 1 || list[0].Cells["role"] != "engineer" {
			t.Errorf("a dry run changed %+v", list)
		}
		more := o.dryRun(t, p.ID, append(table, rows("email,role", eve.Email+",engineer")...))
		if got := more.Rows[3]; got.Outcome != models.RowRefused || got.Refusals[0].Name != "role" || !strings.Contains(got.Refusals[0].Reason.String(), "0 of the project's quota of 100 remaining") {
			t.Errorf("beyond the quota: %+v", got)
		}
		done, err := o.ImportMembers(o.Ctx, o.Root, p.ID, models.Import{Records: table, Plan: dry.Plan})
		if err != nil || !done.Done || done.Count(models.RowAdded) != 2 {
			t.Fatalf("%+v, %v", done, err)
		}
		list := o.exported(t, p.ID)
		if len(list) != 3 || list[0].Cells["role"] != "lead" || list[1].Cells["joined"] != "2020-02-29" || list[1].Cells["until"] != "2100-01-01" || list[2].Cells["joined"] != today {
			t.Errorf("%+v", list)
		}
		if again := o.dryRun(t, p.ID, list); again.Count(models.RowUnchanged) != 3 {
			t.Errorf("what was exported changes: %s", outcomes(again))
		}
		o.CheckRules(t, p.ID)
		entries, err := o.Store.Read(o.Ctx).Audit(store.AuditFilter{Object: "member", ObjectID: m.ID}, store.Page{})
		if err != nil || len(entries) != 2 || entries[0].Action != "update" || !strings.Contains(entries[0].Before, "role_id") {
			t.Errorf("%+v, %v", entries, err)
		}
	})
}

// Rows are taken in their order: one that gives back comes before one that
// needs it.
func TestImportTakesRowsInOrder(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(100))
		big := o.NewRole(t, p.ID, "big", "member", pooltest.Cores(90))
		o.NewRole(t, p.ID, "small", "member", pooltest.Cores(10))
		_, u := o.NewMember(t, big)
		ann := o.NewPerson(t)
		if got := outcomes(o.dryRun(t, p.ID, rows("email,role", ann.Email+",big", u.Email+",small"))); got != "2 refused role; 3 changed role:big>small" {
			t.Error(got)
		}
		if got := o.dryRun(t, p.ID, rows("email,role", u.Email+",small", ann.Email+",big")); got.Count(models.RowRefused) != 0 {
			t.Error(outcomes(got))
		}
	})
}

// What changed between the dry run and the import makes the import refuse.
func TestImportOnlyWhatWasSeen(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(100))
		r := o.NewRole(t, p.ID, "engineer", "member", pooltest.Cores(40))
		ann, bob := o.NewPerson(t), o.NewPerson(t)
		table := rows("email,role", ann.Email+",engineer", bob.Email+",engineer")
		plan := o.dryRun(t, p.ID, table).Plan
		if _, err := o.AddMember(o.Ctx, o.Root, p.ID, projects.MemberInput{Email: ann.Email, RoleID: r.ID}); err != nil {
			t.Fatal(err)
		}
		report, err := o.ImportMembers(o.Ctx, o.Root, p.ID, models.Import{Records: table, Plan: plan})
		pooltest.WantError(t, err, models.KindConflict, "changed since the dry run")
		if got := outcomes(report); !strings.HasPrefix(got, "2 unchanged; 3 added") || report.Done {
			t.Errorf("%s", got)
		}
		if list := o.exported(t, p.ID); len(list) != 1 {
			t.Errorf("%+v", list)
		}
		_, err = o.ImportMembers(o.Ctx, o.Root, p.ID, models.Import{Records: table})
		pooltest.WantError(t, err, models.KindInvalid, "plan")
		_, err = o.ImportMembers(o.Ctx, o.Root, p.ID, models.Import{Records: table[:1], Plan: plan})
		pooltest.WantError(t, err, models.KindConflict)
		// A plan of another project is none of this one.
		other := o.NewProject(t, "speech", pooltest.Cores(100))
		o.NewRole(t, other.ID, "engineer", "member", pooltest.Cores(40))
		foreign := o.dryRun(t, other.ID, table).Plan
		_, err = o.ImportMembers(o.Ctx, o.Root, p.ID, models.Import{Records: table, Plan: foreign})
		pooltest.WantError(t, err, models.KindConflict)
	})
}

func TestImportIsAllOrNothing(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(100))
		o.NewRole(t, p.ID, "engineer", "member", pooltest.Cores(40))
		ann, bob := o.NewPerson(t), o.NewPerson(t)
		table := rows("email,role", ann.Email+",engineer", bob.Email+",nothing")
		dry := o.dryRun(t, p.ID, table)
		_, err := o.ImportMembers(o.Ctx, o.Root, p.ID, models.Import{Records: table, Plan: dry.Plan})
		pooltest.WantError(t, err, models.KindInvalid, "line 3.role")
		if list := o.exported(t, p.ID); len(list) != 0 {
			t.Errorf("%+v", list)
		}
	})
}

func TestWrongRowsOfMembers(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(100))
		r := o.NewRole(t, p.ID, "engineer", "member", pooltest.Cores(10))
		_, u := o.NewMember(t, r)
		ann := o.NewPerson(t)
		off := o.NewPerson(t)
		storetest.InTx(t, o.Store, func(q *store.Queries) error {
			row, err := q.User(off.ID)
			row.Disabled = true
			if err != nil {
				return err
			}
			return q.UpdateUser(&row)
		})
		const all = "email,name,department,role,joined,until"
		tomorrow := o.Store.Now().Add(48 * time.Hour).Format(time.DateOnly)
		for line, column := range map[string]string{
			"nobody@example.org,,,engineer,,":                      "email",
			"no address,,,engineer,,":                              "email",
			",,,engineer,,":                                        "email",
			off.Email + ",,,engineer,,":                            "email",
			ann.Email + ",,,chief,,":                               "role",
			ann.Email + ",,,,,":                                    "role",
			ann.Email + ",Anna,,engineer,,":                        "name",
			ann.Email + ",,Research,engineer,,":                    "department",
			ann.Email + ",,,engineer,29.2.2020,":                   "joined",
			ann.Email + ",,,engineer," + tomorrow + ",":            "joined",
			ann.Email + ",,,engineer,1969-12-31,":                  "joined",
			ann.Email + ",,,engineer,,2020-01-01":                  "until",
			ann.Email + ",,,engineer,,soon":                        "until",
			u.Email + ",,,engineer,,2020-01-01":                    "until",
			"\x00@example.org,,,engineer,,":                        "email",
			strings.Repeat("a", 300) + "@example.org,,,engineer,,": "email",
		} {
			report := o.dryRun(t, p.ID, rows(all, line))
			if row := report.Rows[0]; row.Outcome != models.RowRefused || row.Refusals[0].Name != column {
				t.Errorf("%.60q: %+v", line, row)
			}
		}
		twice := o.dryRun(t, p.ID, rows(all, ann.Email+",,,engineer,,", strings.ToUpper(ann.Email)+",,,engineer,,"))
		if got := outcomes(twice); !strings.HasSuffix(got, "; 3 refused email") {
			t.Error(got)
		}
	})
}

func TestImportAsksWhoMay(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(100))
		r, lead := o.NewRole(t, p.ID, "engineer", "member", pooltest.Cores(10)), o.NewRole(t, p.ID, "lead", "manager", pooltest.Cores(10))
		o.NewRole(t, p.ID, "owner", "owner", pooltest.Cores(0))
		_, memberUser := o.NewMember(t, r)
		_, bossUser := o.NewMember(t, lead)
		ann := o.NewPerson(t)
		for name, c := range map[string]struct {
			actor policies.Actor
			kind  models.Kind
		}{
			"nobody":   {policies.Actor{}, models.KindUnauthenticated},
			"stranger": {o.Actor(t, o.NewPerson(t)), models.KindNotFound},
			"member":   {o.Actor(t, memberUser), models.KindForbidden},
		} {
			if _, err := o.ImportMembers(o.Ctx, c.actor, p.ID, models.Import{DryRun: true}); models.KindOf(err) != c.kind || err == nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		// A manager grants no more by a table than one by one.
		report, err := o.ImportMembers(o.Ctx, o.Actor(t, bossUser), p.ID, models.Import{Records: rows("email,role", ann.Email+",owner"), DryRun: true})
		if err != nil || report.Rows[0].Outcome != models.RowRefused {
			t.Errorf("%s, %v", outcomes(report), err)
		}
	})
}

func TestDayOfJoining(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(100))
		r := o.NewRole(t, p.ID, "engineer", "member", pooltest.Cores(10))
		m, u := o.NewMember(t, r)
		today := models.Day(o.Store.Now())
		if !m.JoinedAt.Equal(today) {
			t.Errorf("joined %s", m.JoinedAt)
		}
		long, soon := today.AddDate(-3, 0, 0).Add(15*time.Hour), today.AddDate(0, 0, 30)
		m, err := o.UpdateMember(o.Ctx, o.Root, p.ID, m.ID, projects.MemberInput{RoleID: r.ID, JoinedAt: &long, Until: &soon})
		if err != nil || !m.JoinedAt.Equal(models.Day(long)) {
			t.Errorf("%+v, %v", m, err)
		}
		if m, err = o.UpdateMember(o.Ctx, o.Root, p.ID, m.ID, projects.MemberInput{RoleID: r.ID}); err != nil || !m.JoinedAt.Equal(models.Day(long)) {
			t.Errorf("left as it is: %+v, %v", m, err)
		}
		later := today.AddDate(0, 0, 2)
		for _, in := range []projects.MemberInput{{RoleID: r.ID, JoinedAt: &later}, {RoleID: r.ID, JoinedAt: &later, Until: &later}} {
			_, err = o.UpdateMember(o.Ctx, o.Root, p.ID, m.ID, in)
			var e *models.Error
			if !errors.As(err, &e) || e.Fields[0].Name != "joined_at" {
				t.Errorf("%v", err)
			}
		}
		o.Clock.Advance(40 * 24 * time.Hour)
		if err := o.RemoveMember(o.Ctx, o.Root, p.ID, m.ID); err != nil {
			t.Fatal(err)
		}
		back, err := o.AddMember(o.Ctx, o.Root, p.ID, projects.MemberInput{Email: u.Email, RoleID: r.ID})
		if err != nil || !back.JoinedAt.Equal(models.Day(o.Store.Now())) || back.ID != m.ID {
			t.Errorf("joined anew: %+v, %v", back, err)
		}
	})
}

// What an account is called is only for who may see it.
func TestImportGivesNoAccountsAway(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(100))
		r, lead := o.NewRole(t, p.ID, "engineer", "member", pooltest.Cores(10)), o.NewRole(t, p.ID, "lead", "manager", pooltest.Cores(10))
		_, bossUser := o.NewMember(t, lead)
		present, member := o.NewMember(t, r)
		gone, former := o.NewMember(t, r)
		pooltest.NoError(t, o.RemoveMember(o.Ctx, o.Root, p.ID, gone.ID))
		ann := o.NewPerson(t)
		storetest.InTx(t, o.Store, func(q *store.Queries) error {
			secret := models.Department{Name: "Secret Affairs", Version: 1, CreatedAt: q.Now()}
			err := q.CreateDepartment(&secret)
			for _, u := range []*models.User{&member, &former} {
				u.Name, u.DepartmentID = "Maria Secret", &secret.ID
				err = errors.Join(err, q.UpdateUser(u))
			}
			return err
		})
		words := func(actor policies.Actor, u models.User) string {
			t.Helper()
			report, err := o.ImportMembers(o.Ctx, actor, p.ID, models.Import{Records: rows("email,name,department,role", u.Email+",x,x,engineer"), DryRun: true})
			if err != nil || len(report.Rows[0].Refusals) != 2 {
				t.Fatalf("%s, %v", outcomes(report), err)
			}
			return report.Rows[0].Refusals[0].Reason.String() + "; " + report.Rows[0].Refusals[1].Reason.String()
		}
		const hidden = "does not match the account; leave it empty; does not match the account; leave it empty"
		boss := o.Actor(t, bossUser)
		for _, u := range []models.User{former, ann} {
			if got := words(boss, u); got != hidden {
				t.Errorf("a manager reads of %s: %s", u.Email, got)
			}
		}
		for _, got := range []string{words(boss, member), words(o.Root, member), words(o.Root, former)} {
			if !strings.Contains(got, "is Maria Secret in") || !strings.Contains(got, "is Secret Affairs in") {
				t.Errorf("of %d: %s", present.ID, got)
			}
		}
	})
}
