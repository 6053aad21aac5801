package pooltest

import (
	"weir/models"
	"weir/models/store"
)

// Reporter is what rapid's and testing's T have in common.
type Reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// CheckRules adds everything up by hand, from the rows alone, and holds it
// against rules 1 and 2.
func (w *World) CheckRules(t Reporter, project int64) {
	t.Helper()
	q := w.Store.Read(w.Ctx)
	p, err1 := q.Project(store.AllProjects, project)
	members, err2 := q.Members(store.AllProjects, project, store.Page{Limit: 200})
	all, err3 := q.WorkspacesIn(models.InUseStates...)
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatalf("%v, %v, %v", err1, err2, err3)
	}
	var allocated, inUse models.Resources
	byMember := map[int64]models.Resources{}
	for _, row := range all {
		if row.ProjectID == project {
			inUse = inUse.Add(row.Demand.Resources())
			byMember[row.MemberID] = byMember[row.MemberID].Add(row.Demand.Resources())
		}
	}
	for _, m := range members {
		allocated = allocated.Add(m.Limit)
		if over := byMember[m.ID].Exceeding(m.Limit); len(over) > 0 {
			t.Errorf("rule 2: %s holds too much: %+v", m.UserEmail, over)
		}
	}
	if over := allocated.Exceeding(p.Quota); len(over) > 0 {
		t.Errorf("rule 1: too much is allocated: %+v", over)
	}
	if over := inUse.Exceeding(p.Quota); len(over) > 0 {
		t.Errorf("rule 2: the project holds too much: %+v", over)
	}
	v, err := w.Project(w.Ctx, w.Root, project)
	if err != nil || v.Allocated != allocated || v.InUse != inUse {
		t.Errorf("the service says %+v and %+v, the rows %+v and %+v, %v", v.Allocated, v.InUse, allocated, inUse, err)
	}
}

// CheckDevices adds up the open shares in SQL and holds them against rules 3
// and 4.
func (w *World) CheckDevices(t Reporter) {
	t.Helper()
	db, err := w.Store.SQL()
	if err != nil {
		t.Fatalf("%v", err)
	}
	over, err := db.Query(`SELECT d.uuid, SUM(s.cores), SUM(s.memory_mib), COUNT(DISTINCT s.holder_id), COUNT(DISTINCT s.project_id)
		FROM shares s JOIN devices d ON d.id = s.device_id WHERE s.until_at IS NULL
		GROUP BY d.id, d.uuid, d.memory_mib, d.sharing = 'exclusive', d.mixed
		HAVING SUM(s.cores) > 100 OR SUM(s.memory_mib) > d.memory_mib OR (d.sharing = 'exclusive' AND COUNT(*) > 1)
			OR (NOT d.mixed AND COUNT(DISTINCT s.project_id) > 1)`)
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer over.Close()
	for over.Next() {
		var uuid string
		var cores, memory, holders, projects int64
		if err := over.Scan(&uuid, &cores, &memory, &holders, &projects); err != nil {
			t.Fatalf("%v", err)
		}
		t.Errorf("rules 3 and 4: %s has %d cores, %d MiB, %d holders, %d projects", uuid, cores, memory, holders, projects)
	}
	if err := over.Err(); err != nil {
		t.Fatalf("%v", err)
	}
}
