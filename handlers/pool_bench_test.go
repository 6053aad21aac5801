package handlers

import (
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// BenchmarkPoolPage is the page of a pool of 50 machines with 8 GPUs each, of
// which 1,600 shares are held, from the request to the last byte.
func BenchmarkPoolPage(b *testing.B) {
	w := newWorld(b)
	for i := range 50 {
		w.enrolled("node-"+strconv.Itoa(i), 8)
	}
	workspace := w.create(w.member, "/workspaces", `{"project_id":`+id(w.project)+`,"request":{"gpus":1,"cores":10}}`)
	storetest.InTx(b, w.store, func(q *store.Queries) error {
		row, err := q.Workspace(store.AllProjects, workspace)
		if err != nil {
			return err
		}
		devices, err := q.DevicesAt(store.AllMachines)
		for _, d := range devices {
			for range 4 {
				if err := q.CreateShare(&models.Share{DeviceID: d.ID, HolderID: row.HolderID, ProjectID: w.project, UserID: 1, Cores: 20, MemoryMiB: 1024,
					Enforcement: models.EnforcedAdvisory, From: time.Now()}); err != nil {
					return err
				}
			}
		}
		return err
	})
	for name, email := range map[string]string{"administrator": "ada@example.org", "stranger": "bob@example.org"} {
		v := w.visitor(email, name == "administrator")
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r := httptest.NewRequestWithContext(b.Context(), "GET", "/pool", nil)
				r.Header.Set("Cookie", v.cookie)
				rec := httptest.NewRecorder()
				if w.app.ServeHTTP(rec, r); rec.Code != 200 {
					b.Fatalf("%d %s", rec.Code, rec.Body)
				}
				b.ReportMetric(float64(rec.Body.Len()), "bytes/page")
			}
		})
	}
}
