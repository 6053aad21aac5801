package handlers

import (
	"strings"
	"testing"

	"weir/models/store/storetest"
)

// BenchmarkPages prints how many of each console page an administrator could
// load in a second, one after another, with 10,000 people, 1,000 projects and
// 100,000 audit entries.
func BenchmarkPages(b *testing.B) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		b.Run(dialect, func(b *testing.B) {
			c := newCity(b, dialect, storetest.LargeDataset)
			for _, route := range c.routes() {
				path, _ := c.path(route, c.admin)
				if rec, _ := c.visit(c.admin, path); strings.HasPrefix(route, "/api/") || rec.Code != 200 {
					continue
				}
				b.Run(route, func(b *testing.B) {
					for b.Loop() {
						c.visit(c.admin, path)
					}
					b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pages/s")
				})
			}
		})
	}
}

// BenchmarkProjectPage is a project's page for its member, built anew for each request,
// beside as many other projects as in BenchmarkPages.
func BenchmarkProjectPage(b *testing.B) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		b.Run(dialect, func(b *testing.B) {
			c := newCity(b, dialect, storetest.LargeDataset)
			for b.Loop() {
				if rec, _ := c.visit(c.member, "/projects/"+id(c.project)); rec.Code != 200 {
					b.Fatal(rec.Code, rec.Body)
				}
			}
		})
	}
}
