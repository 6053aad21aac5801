package handlers

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"

	"weir/models/store"
	"weir/models/store/storetest"
)

const boundsFile = "testdata/bounds.tsv"

// bounds is the table of the most statements that each page and each REST
// resource may send to the database, however much is in it.
func bounds(t testing.TB) map[string]int {
	t.Helper()
	f, err := os.Open(boundsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table := map[string]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		route, n, _ := strings.Cut(lines.Text(), "\t")
		if table[route], err = strconv.Atoi(n); err != nil {
			t.Fatalf("%s: %q: %v", boundsFile, lines.Text(), err)
		}
	}
	return table
}

// With 10,000 people, 1,000 projects and 100,000 audit entries every page asks
// as many statements as with a handful, and none reads a whole table.
func TestPagesAreBounded(t *testing.T) {
	table := bounds(t)
	excused := map[string]bool{}
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			small, large := newCity(t, dialect, storetest.SmallDataset), newCity(t, dialect, storetest.LargeDataset)
			large.excused = excused
			seen := map[string]bool{}
			for _, route := range large.routes() {
				seen[route] = true
				most := 0
				for _, who := range []string{"administrator", "member"} {
					for _, query := range append([]string{""}, variants[route]...) {
						most = max(most, compare(t, small, large, visit{route, query, who}))
					}
				}
				if exports[route] {
					continue
				}
				if n, known := table[route]; !known || most > n {
					t.Errorf("%s asks %d statements, allowed are %d. If it must, write this line into %s:\n%s\t%d", route, most, n, boundsFile, route, most)
				}
			}
			for route := range table {
				if !seen[route] {
					t.Errorf("%s has a line for %s, which is no route", boundsFile, route)
				}
			}
		})
	}
	failed := t.Failed()
	for route, list := range whole {
		for name := range list {
			if !failed && !excused[route+" "+name] {
				t.Errorf("%s need not read all of %s: remove the exception", route, name)
			}
		}
	}
}

// visit is one request that is made in both cities.
type visit struct{ route, query, who string }

// make sends it and returns what was asked of the database.
func (v visit) make(t *testing.T, c *city) (int, []store.Statement) {
	t.Helper()
	token := c.admin
	if v.who == "member" {
		token = c.member
	}
	path, unknown := c.path(v.route, token)
	if unknown {
		t.Fatalf("%s: a parameter that nothing is known for: add it to city.path", path)
	}
	rec, statements := c.visit(token, path+v.query)
	if rec.Code >= 500 || rec.Code >= 400 && v.who == "administrator" && !refused[v.route] {
		t.Errorf("%s as %s: %d %.300s; log: %s", path+v.query, v.who, rec.Code, rec.Body, c.log)
	}
	return rec.Code, statements
}

// compare makes a visit in both cities and returns how many statements it
// takes in the large one.
func compare(t *testing.T, small, large *city, v visit) int {
	t.Helper()
	before, few := v.make(t, small)
	after, many := v.make(t, large)
	if before != after {
		t.Errorf("%v: %d in a small city, %d in a large one", v, before, after)
	}
	if len(many) > len(few) && !exports[v.route] {
		t.Errorf("%v: %d statements in a small city, %d in a large one:%s", v, len(few), len(many), more(few, many))
	}
	for _, s := range distinct(many) {
		if wrong := large.reads(s, v.route+v.query); wrong != "" {
			t.Errorf("%v: %s\n%s\n%v", v, s.SQL, wrong, s.Args)
		}
	}
	return len(many)
}

// distinct keeps the first of statements that differ in their values alone.
func distinct(list []store.Statement) (few []store.Statement) {
	seen := map[string]bool{}
	for _, s := range list {
		if !seen[s.SQL] {
			seen[s.SQL] = true
			few = append(few, s)
		}
	}
	return few
}

// more lists the statements that are asked more often in a large city.
func more(few, many []store.Statement) (text string) {
	times := map[string]int{}
	for _, s := range many {
		times[s.SQL]++
	}
	for _, s := range few {
		times[s.SQL]--
	}
	for sql, n := range times {
		if n > 0 {
			text += "\n" + strconv.Itoa(n) + " × " + sql
		}
	}
	return text
}

// The lists and pages of a project's files, which only its members see.
const (
	filesRoute = "/api/v1/projects/:id/files"
	filesPages = "/projects/:id/files"
)

// refused are routes that refuse the administrator, too: what they would show
// is not there, or is the member's.
var refused = map[string]bool{
	"/api/v1/access": true, "/api/v1/search": true, "/api/v1/runs/:id/log": true, "/api/v1/runs/:id/graph": true, "/api/v1/reservations/calendar": true, "/setup": true, "/invitation": true, "/password": true, "/api/v1/agents/address": true, "/workspaces/:id/open": true, "/workspaces/:id/restart": true, "/workspaces/:id/log": true, "/api/v1/workspaces/:id/log": true, "/api/v1/projects/:id/available": true,
	filesRoute + "": true, filesRoute + "/archive": true, filesRoute + "/checksum": true, filesRoute + "/content": true, filesRoute + "/search": true, filesRoute + "/stat": true, filesRoute + "/trash": true, filesRoute + "/tree": true, filesRoute + "/environment": true, filesRoute + "/model": true, filesRoute + "/graph": true, filesRoute + "/versions": true, filesRoute + "/versions/:version/content": true,
	filesPages + "": true, filesPages + "/entry": true, filesPages + "/model": true, filesPages + "/graph": true, filesPages + "/preview": true, filesPages + "/move": true, filesPages + "/trash": true, filesPages + "/trash/:item/delete": true, filesPages + "/versions/:version/delete": true,
	"/projects/:id/members/:member/handover": true, "/projects/:id/members/:member/handover/end": true, "/projects/:id/split-presets/:preset/delete": true, "/api/v1/projects/:id/members/:member/handover": true,
}

// exports are whole lists, which are read page by page and sent as they are
// read: their statements are as many as there are pages, each bounded.
var exports = map[string]bool{
	"/api/v1/audit.csv": true, "/api/v1/accounting.csv": true, "/api/v1/projects/:id/accounting.csv": true,
	"/api/v1/users.csv": true, "/api/v1/projects.csv": true,
}

// whole are the tables that a route may read from end to end, and why.
var whole = map[string]map[string]string{
	"/metrics": {"workspaces": "counted by state, by an index", "decisions": "counted by outcome, by an index"},
	// One narrow row for each project that has not ended.
	"/capacity": {"projects": "the sum of all quotas, by an index"}, "/api/v1/capacity": {"projects": "the same"},
	"/usage": {"shares": "the sum of all usage", "holders": "the same"}, "/api/v1/usage": {"shares": "the same", "holders": "the same"},
	// SQLite looks up the 200 names of a page in the index of all names.
	"/projects/start": {"projects": "names, by an index"}, "/projects/new": {"projects": "the same"}, "/projects/:id/edit": {"projects": "the same"},
	"/requests/:id": {"projects": "the same"}, "/requests/:id/withdraw": {"projects": "the same"}, "/api/v1/requests/:id": {"projects": "the same"},
	// A project's fair share is a part of the sum of all quotas, which an index has.
	"/reservations/new": {"projects": "summed"},
	// A part of a name may be anywhere.
	"/people?q=citizen99": {"users": "read until the page is full"},
	"/search?q=citizen99": {"projects": "the same"}, "/api/v1/search?q=citizen99": {"projects": "the same"},
	"/audit?actor=Citizen+1": {"users": "a name in any case"},
	// What is computed of each project is in no index; one row each.
	"/projects?sort=allocated": {"projects": "sorted"}, "/projects?sort=members": {"projects": "sorted"},
	"/projects?sort=remaining": {"projects": "sorted"}, "/projects?sort=in_use": {"projects": "sorted"}, "/projects?sort=ends_at": {"projects": "sorted"},
	// What a department's people have is a sum over them.
	"/departments": {"users": "counted by department", "members": "counted by department"}, "/api/v1/departments": {"users": "the same", "members": "the same"},
}

// variants are the queries with which routes are asked beside none.
var variants = map[string][]string{
	"/projects": {"?sort=name", "?sort=quota&order=desc", "?sort=ends_at", "?sort=allocated", "?sort=in_use", "?sort=remaining", "?sort=members", "?state=active"},
	"/access":   {"?user_id=1&project_id=1&right=workspace:launch"}, "/api/v1/access": {"?user_id=1&project_id=1&object=workspace&act=launch"},
	"/reservations/calendar": {"?project_id=1"}, "/api/v1/reservations/calendar": {"?project_id=1"},
	"/audit":  {"?object=project", "?actor=citizen1@example.org", "?actor=Citizen+1"},
	"/search": {"?q=citizen99"}, "/api/v1/search": {"?q=citizen99"},
	"/people":          {"?q=citizen99"},
	"/requests":        {"?filter=pending", "?filter=decided"},
	"/workspaces":      {"?state=ended", "?state=all", "?owner=all", "?owner=all&q=citizen99&idle_hours=1"},
	"/api/v1/requests": {"?filter=pending", "?filter=decided"},
	"/workspaces/stop": {"?id=1"}, "/api/v1/workspaces": {"?q=citizen99", "?idle_hours=1"},
	filesPages + "": {"?path=/notebook/1/project_model", "?path=/notebook/1/project_model&q=x"}, filesPages + "/entry": {"?path=/notebook/1/project_model"}, filesPages + "/graph": {"?path=/notebook/1/project_model/x.onnx"}, filesPages + "/access": {"?path=/notebook/1/project_model"}, filesPages + "/move": {"?item=/notebook/1/project_model/x"},
	filesRoute + "": {"?path=/notebook/1/project_model"}, filesRoute + "/graph": {"?path=/notebook/1/project_model/x.onnx&cpus=8"}, filesRoute + "/archive": {"?path=/notebook/1/project_model"}, filesRoute + "/checksum": {"?path=/notebook/1/project_model"}, filesRoute + "/search": {"?path=/notebook/1/project_model"}, filesRoute + "/stat": {"?path=/notebook/1/project_model"}, filesRoute + "/versions": {"?path=/notebook/1/project_model"},
}
