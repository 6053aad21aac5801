package handlers

import (
	"strings"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/storage/storagetest"
)

// A workspace that was started before a change of the rules says that it has other
// directories than now.
func TestOutdatedDirectories(t *testing.T) {
	w := newWorld(t)
	c := storagetest.New(t, w.store, w.app.Directories)
	plan := must(w.app.Directories.MountPlan(t.Context(), c.DirectoryUser(t, "ann")))(t)
	m := c.Members["ann"]
	row := models.Workspace{ProjectID: c.Project, MemberID: m.ID, UserID: m.UserID, EnvironmentID: w.environment, Name: "old", State: models.StateRunning,
		Target: []models.Parameter{}, Limits: []models.Limit{}, Mounts: models.MountsDigest(plan.Mounts), Version: 1, RequestedAt: w.store.Now()}
	storetest.InTx(t, w.store, func(q *store.Queries) error { return q.CreateWorkspace(&row, models.Text{}) })
	w.create(w.admin, "/users", `{"email":"kim@example.org","name":"Kim","password":"correct horse","admin":true}`)
	ann, cookie := w.token("ann@cases.example.org"), w.signIn("kim@example.org", "correct horse")
	check := func(want bool) {
		t.Helper()
		if got := w.get(ann, "/workspaces/"+id(row.ID)+"/directories").body["outdated"]; got != want {
			t.Errorf("outdated %v, want %t", got, want)
		}
		if got := strings.Contains(w.visit("GET", "/workspaces/"+id(row.ID), nil, "Cookie", cookie).Body.String(), "restart to apply"); got != want {
			t.Errorf("the page says so: %t, want %t", got, want)
		}
	}
	check(false)
	rule := models.FileRule{ProjectID: c.Project, Path: models.FilePath(c.Expand("/notebook/{p}/project_model/top")), Subject: models.SubjectProject, Access: models.AccessRead, Download: models.DownloadInherit, ChangedAt: w.store.Now()}
	storetest.InTx(t, w.store, func(q *store.Queries) error { return q.PutFileRule(&rule) })
	check(true)
	storetest.InTx(t, w.store, func(q *store.Queries) error { return q.DeleteFileRule(c.Project, rule.ID) })
	check(false)
}
