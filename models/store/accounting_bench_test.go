package store_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// benchmarkShares is how many shares a year has in [BenchmarkShareSums].
const benchmarkShares = 100_000

// BenchmarkShareSums sums the shares of the last month, and of a year, of all projects and of
// one, at prices that changed every month.
func BenchmarkShareSums(b *testing.B) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		s := storetest.Open(b, dialect)
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		fillShares(b, s, now.AddDate(-1, 0, 0))
		var prices []models.GPUPrice
		for i := range 12 {
			prices = append(prices, models.GPUPrice{ID: int64(i + 1), Model: "m", Billing: models.BillingOnDemand, ValidFrom: now.AddDate(0, i-12, 0)})
		}
		q := s.Read(b.Context())
		for _, span := range []struct {
			name string
			store.ShareSpan
			by    store.ShareGroup
			steps int
		}{{"year of all by project", store.ShareSpan{From: now.AddDate(-1, 0, 0), Until: now}, store.SharesByProject, 52},
			{"month of all by project", store.ShareSpan{From: now.AddDate(0, -1, 0), Until: now}, store.SharesByProject, 31},
			{"month of one by user", store.ShareSpan{From: now.AddDate(0, -1, 0), Until: now, Project: 7}, store.SharesByUser, 31}} {
			measure := func(what string, do func() error) {
				b.Run(dialect+"/"+span.name+"/"+what, func(b *testing.B) {
					for b.Loop() {
						if err := do(); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			measure("sums", func() error { _, err := q.ShareSums(span.ShareSpan, span.by, prices); return err })
			measure("steps", func() error {
				_, err := q.ShareSteps(span.ShareSpan, span.Until.Sub(span.From)/time.Duration(span.steps), span.steps)
				return err
			})
			measure("measured", func() error { _, err := q.MeasuredUses(span.ShareSpan, span.by); return err })
		}
	}
}

// fillShares adds a year of shares of 20 projects on 100 devices, which are measured.
func fillShares(b *testing.B, s *store.Store, from time.Time) {
	b.Helper()
	db, err := s.SQL()
	if err != nil {
		b.Fatal(err)
	}
	at := func(d time.Duration) string { return from.Add(d).Format("'2006-01-02 15:04:05.999+00:00'") }
	insert := func(table string, n int, row func(i int) string) {
		const each = 1000
		for begin := 0; begin < n; begin += each {
			var rows []string
			for i := begin; i < min(begin+each, n); i++ {
				rows = append(rows, row(i+1))
			}
			if _, err := db.Exec("INSERT INTO " + table + " VALUES " + strings.Join(rows, ", ")); err != nil {
				b.Fatal(table, err)
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	insert("users (id, email, name, password_hash, created_at)", 20, func(i int) string { return fmt.Sprintf("(%d, 'u%d', '', '', %s)", i, i, at(0)) })
	insert("projects (id, name, quota_gpu_cores, quota_gpu_memory_mib, quota_cpu_milli, quota_memory_mib, quota_storage_mib, starts_at, created_at)", 20,
		func(i int) string { return fmt.Sprintf("(%d, 'p%d', 1, 1, 1, 1, 1, %s, %s)", i, i, at(0), at(0)) })
	insert("roles (id, project_id, name, permission, limit_gpu_cores, limit_gpu_memory_mib, limit_cpu_milli, limit_memory_mib, limit_storage_mib, created_at)", 1,
		func(int) string { return "(1, 1, 'r', 'member', 1, 1, 1, 1, 1, " + at(0) + ")" })
	insert("members (id, project_id, user_id, role_id, created_at)", 1, func(int) string { return "(1, 1, 1, 1, " + at(0) + ")" })
	insert("holders (id, kind, project_id, member_id, user_id, name, phase, requested_at)", 1,
		func(int) string { return "(1, 'workspace', 1, 1, 1, 'w', 'ended', " + at(0) + ")" })
	insert("providers (id, name, state, seen_at, created_at)", 1, func(int) string { return "(1, 'n', 'online', " + at(0) + ", " + at(0) + ")" })
	insert("devices (id, provider_id, uuid, number, minor, model, memory_mib, created_at)", 100,
		func(i int) string { return fmt.Sprintf("(%d, 1, 'u%d', 0, 0, 'm', 1, %s)", i, i, at(0)) })
	insert("shares (device_id, holder_id, project_id, user_id, cores, memory_mib, enforcement, from_at, until_at)", benchmarkShares, func(i int) string {
		begin := time.Duration(i) * (365 * 24 * time.Hour / benchmarkShares)
		return fmt.Sprintf("(%d, 1, %d, %d, %d, 1, 'advisory', %s, %s)", i%100+1, 1+random.IntN(20), 1+random.IntN(20), 1+random.IntN(100), at(begin),
			at(begin+time.Duration(random.Int64N(int64(12*time.Hour)))))
	})
	insert("telemetry (device_id, step, slot, at, samples, utilisation_sum, utilisation_max, memory_sum, memory_max, temperature_sum, temperature_max, power_sum, power_max)",
		100*2160, func(i int) string {
			return fmt.Sprintf("(%d, 3600, %d, %s, 720, 36000, 1, 1, 1, 1, 1, 1, 1)", (i-1)/2160+1, (i-1)%2160, at(time.Duration(365*24-2160+(i-1)%2160)*time.Hour))
		})
	if _, err := db.Exec("ANALYZE"); err != nil {
		b.Fatal(err)
	}
}
