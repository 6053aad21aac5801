package handlers

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// city is a world with many inhabitants, which notes every statement that
// reaches its database.
type city struct {
	*world
	focus         storetest.Focus
	workspace     int64
	reservation   int64
	run           int64
	request       int64
	invitation    int64
	robot, key    int64 // a service account, and its token
	webhook       int64
	session       int64
	passkey       int64
	curator       int64
	deployment    int64
	delivery      int64
	notifications map[string]int64 // of each token's person, one
	sizes         map[string]int64 // of tables
	excused       map[string]bool  // which exceptions were needed

	mu         sync.Mutex
	statements []store.Statement
}

func newCity(t testing.TB, dialect string, size storetest.Dataset) *city {
	t.Helper()
	c := &city{world: newWorldOn(t, storetest.Open(t, dialect), func(*Config) {}), notifications: map[string]int64{}, sizes: map[string]int64{}}
	c.withRuns(func() {})
	// The use of a token is recorded once a minute, use is added up once an hour, and caches
	// expire: no time passes.
	stopClocks(c.store)
	c.curator = c.create(c.admin, "/curators", `{"directory":"/public_model","email":"ann@example.org"}`)
	c.session, c.passkey = c.signInBy(1, "administrator")
	c.webhook = c.create(c.admin, "/webhooks", `{"name":"chat","url":"https://chat.example.org/hook","events":["request.*"],"enabled":true}`)
	c.workspace = c.create(c.member, "/workspaces", `{"project_id":`+id(c.project)+`,"request":{"gpus":1,"cores":10}}`)
	c.running(c.workspace)
	c.run = c.addRun(c.project, "ann@example.org", models.RunRunning)
	c.deployment = c.addDeployment(c.project, "ann@example.org", models.TaskImageClassification)
	c.app.Workspaces.Served = oneImage{}
	c.reservation = c.create(c.member, "/reservations", reserve(c.project))
	c.request = c.create(c.member, "/requests", `{"limit":{"project_id":`+id(c.project)+`,"role_id":`+id(c.role)+`,"limit":`+plenty+`},"reason":"more"}`)
	c.invitation = c.invite()
	c.robot, c.key = c.addRobot()
	q := c.store.Read(t.Context())
	ann, err1 := q.UserByEmail("ann@example.org")
	root, err2 := q.UserByEmail("root@example.org")
	c.focus = storetest.Focus{Project: c.project, Role: c.role, User: ann.ID, Environment: c.environment}
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	storetest.InTx(t, c.store, func(q *store.Queries) error {
		return errors.Join(q.CreateIdentity(&models.Identity{UserID: ann.ID, Issuer: "https://id.example.org", Subject: "ann", CreatedAt: q.Now()}),
			q.Notify([]int64{ann.ID, root.ID}, models.Notification{Kind: "request.refused", Text: models.Say("Refused."), Link: "/requests"}))
	})
	size.Build(t, c.store, c.focus)
	c.notifications[c.member], c.notifications[c.admin] = c.number("SELECT MIN(id) FROM notifications WHERE user_id = "+id(ann.ID)), c.number("SELECT MIN(id) FROM notifications WHERE user_id = "+id(root.ID))
	c.delivery = c.number("SELECT MIN(id) FROM deliveries")
	if err := c.store.Watch(c.note); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{c.admin, c.member} {
		c.visit(token, "/")
	}
	return c
}

// invite invites as many people as fit on a page, and returns one invitation.
func (c *city) invite() int64 {
	in := `{"role_id":` + id(c.create(c.admin, "/projects/"+id(c.project)+"/roles", `{"name":"guest","permission":"viewer","limit":{}}`)) + `,"emails":["guest@example.org"`
	for i := range 60 {
		in += `,"guest` + id(int64(i)) + `@example.org"`
	}
	list := c.want(201, c.admin, "POST", "/projects/"+id(c.project)+"/invitations", in+`]}`).body["items"].([]any)
	return int64(list[0].(map[string]any)["id"].(float64))
}

// addRobot adds a service account with a token.
func (c *city) addRobot() (member, token int64) {
	at := "/projects/" + id(c.project)
	role := c.create(c.admin, at+"/roles", `{"name":"robots","permission":"viewer","limit":{}}`)
	made := c.want(201, c.admin, "POST", at+"/service-accounts", `{"name":"robot","role_id":`+id(role)+`}`)
	member = int64(made.body["id"].(float64))
	return member, c.create(c.admin, at+"/members/"+id(member)+"/tokens", `{"name":"ci"}`)
}

func (c *city) number(sql string) (n int64) {
	c.Helper()
	if err := must(c.store.SQL())(c).QueryRow(sql).Scan(&n); err != nil {
		c.Fatal(sql, err)
	}
	return n
}

func (c *city) note(s store.Statement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statements = append(c.statements, s)
}

// visit asks for a path and returns what that asked of the database, with only
// rights and the counts of the navigation cached.
func (c *city) visit(token, path string) (*httptest.ResponseRecorder, []store.Statement) {
	storetest.InTx(c, c.store, func(q *store.Queries) error {
		q.Touch("pool")
		return nil
	})
	c.mu.Lock()
	c.statements = nil
	c.mu.Unlock()
	r := httptest.NewRequestWithContext(c.Context(), "GET", path, nil)
	if path == "/metrics" {
		token = metricsToken
	}
	r.Header.Set("Authorization", "Bearer "+token)
	rec := httptest.NewRecorder()
	c.app.ServeHTTP(rec, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	return rec, slices.Clone(c.statements)
}

// routes are all that can be got, but streams and files.
func (c *city) routes() (list []string) {
	for _, r := range c.app.echo.Routes() {
		if r.Method == "GET" && !slices.Contains([]string{"/events", "/static/*", "/docs/*"}, r.Path) {
			list = append(list, r.Path)
		}
	}
	slices.Sort(list)
	return list
}

// path fills a route's parameters with the ids of things that there are; of
// one's own where others have no access.
func (c *city) path(route, token string) (path string, unknown bool) {
	route = strings.Replace(route, ":member/tokens/:token", id(c.robot)+"/tokens/"+id(c.key), 1)
	route = strings.Replace(route, ":member/tokens", id(c.robot)+"/tokens", 1)
	route = strings.Replace(route, ":model", "tiny", 1)
	own := int64(1) // the token by which the administrator asks
	if token == c.member {
		own = c.number("SELECT MIN(id) FROM access_tokens WHERE user_id = " + id(c.focus.User))
	}
	for _, p := range []struct {
		prefix string
		id     int64
	}{{"/projects/", c.project}, {"/members/", c.place}, {"/roles/", c.role}, {"/workspaces/", c.workspace}, {"/reservations/", c.reservation}, {"/runs/", c.run}, {"/deployments/", c.deployment},
		{"/environments/", c.environment},
		{"/people/", c.focus.User}, {"/users/", c.focus.User}, {"/identities/", 1}, {"/tokens/", own}, {"/requests/", c.request}, {"/invitations/", c.invitation}, {"/notifications/", c.notifications[token]},
		{"/webhooks/", c.webhook}, {"/deliveries/", c.delivery}, {"/devices/", c.device}, {"/providers/", 1}, {"/departments/", 1}, {"/curators/", c.curator}, {"/sessions/", c.session}, {"/passkeys/", c.passkey}, {"/split-presets/", 1}, {"/versions/", 1}, {"/trash/", 1}} {
		route = regexp.MustCompile(p.prefix+`:\w+`).ReplaceAllString(route, p.prefix+id(p.id))
	}
	return route, strings.Contains(route, ":")
}

// large tells whether a table grows with people, projects or time; the others
// are as long as there are machines and images.
func (c *city) large(table string) bool {
	if _, known := c.sizes[table]; !known {
		c.sizes[table] = 0
		// SQLite also names what a statement calls its own parts.
		if c.store.Dialect() != "sqlite" || c.number("SELECT COUNT(*) FROM sqlite_master WHERE name = '"+table+"'") > 0 {
			c.sizes[table] = c.number("SELECT COUNT(*) FROM " + table)
		}
	}
	return c.sizes[table] >= 1000
}

// excuses tells whether a route may read all of a table.
func (c *city) excuses(route, table string) bool {
	_, may := whole[route][table]
	c.excused[route+" "+table] = may
	return may
}

// reads tells what is wrong with how the database answers a statement; empty
// when it is bounded.
func (c *city) reads(s store.Statement, route string) string {
	if !strings.HasPrefix(s.SQL, "SELECT") && !strings.HasPrefix(s.SQL, "WITH") {
		return ""
	}
	if s.Rows > 2*store.PageSize {
		return "gives " + id(s.Rows) + " rows"
	}
	if c.store.Dialect() == "postgres" {
		return c.readsPostgres(s, route)
	}
	return c.readsSQLite(s, route)
}

// plan is a node of what PostgreSQL did; rows are averages over the loops.
type plan struct {
	Relation string  `json:"Relation Name"`
	Rows     float64 `json:"Actual Rows"`
	Filtered float64 `json:"Rows Removed by Filter"`
	Loops    float64 `json:"Actual Loops"`
	Plans    []plan
}

// read counts the rows that were looked at in each table.
func (p plan) read(rows map[string]float64) {
	if p.Relation != "" {
		rows[p.Relation] += (p.Rows + p.Filtered) * p.Loops
	}
	for _, child := range p.Plans {
		child.read(rows)
	}
}

// readsPostgres runs the statement again, counting the rows that are looked
// at, as it would be answered where tables are so long that nobody reads them
// whole: at ten thousand rows that is still cheaper than a page of look-ups.
func (c *city) readsPostgres(s store.Statement, route string) string {
	var raw []byte
	var plans []struct{ Plan plan }
	tx := must(must(c.store.SQL())(c).Begin())(c)
	_, err := tx.Exec("SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off")
	err = errors.Join(err, tx.QueryRow("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) "+s.SQL, s.Args...).Scan(&raw), tx.Rollback())
	if err := errors.Join(err, json.Unmarshal(raw, &plans)); err != nil {
		c.Fatalf("%s: %v", s.SQL, err)
	}
	rows := map[string]float64{}
	plans[0].Plan.read(rows)
	for table, n := range rows {
		if c.large(table) && (n > 3000 || n >= float64(c.sizes[table])) && !c.excuses(route, table) {
			return "looks at " + id(int64(n)) + " of the " + id(c.sizes[table]) + " rows of " + table
		}
	}
	return ""
}

var (
	scanned = regexp.MustCompile(`\bSCAN (\w+)(?: USING(?: COVERING)? INDEX (\w+))?`)
	tables  = regexp.MustCompile("(?i)\\b(?:from|join)\\s+[`\"]?(\\w+)[`\"]?(?:\\s+(?:as\\s+)?[`\"]?(\\w+)[`\"]?)?")
)

// readsSQLite looks for large tables that are read from end to end: those that
// are scanned, unless it stops after a page.
func (c *city) readsSQLite(s store.Statement, route string) string {
	rows, err := must(c.store.SQL())(c).Query("EXPLAIN QUERY PLAN "+s.SQL, s.Args...)
	if err != nil {
		c.Fatalf("%s: %v", s.SQL, err)
	}
	var how strings.Builder
	for rows.Next() {
		var a, b, n int
		var line string
		if err := rows.Scan(&a, &b, &n, &line); err != nil {
			c.Fatal(err)
		}
		how.WriteString(line + "\n")
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		c.Fatal(err)
	}
	names := map[string]string{}
	for _, m := range tables.FindAllStringSubmatch(s.SQL, -1) {
		names[m[1]], names[m[2]] = m[1], m[1]
	}
	stops := strings.Contains(s.SQL, "LIMIT") && !strings.Contains(how.String(), "USE TEMP B-TREE")
	for _, m := range scanned.FindAllStringSubmatch(how.String(), -1) {
		table := names[m[1]]
		if strings.HasPrefix(s.SQL, "WITH "+table+" (") { // the statement has it with it
			continue
		}
		part := m[2] != "" && c.number("SELECT COUNT(*) FROM sqlite_master WHERE name = '"+m[2]+"' AND sql LIKE '% WHERE %'") > 0
		if table != "" && !stops && !part && c.large(table) && !c.excuses(route, table) {
			return "reads all of " + table + ":\n" + how.String()
		}
	}
	return ""
}
