package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"weir/models/store"
)

const soakers = 8 // members who work at the same time

// load is what members do with two servers, and what they were answered.
type load struct {
	t       *testing.T
	servers []*server
	env     int64
	team    team
	roles   []int64 // one for each member to edit
	over    chan struct{}

	mu        sync.Mutex
	requests  int
	broken    int // connections, and answers that the server cannot do it now
	faults    []string
	took      []time.Duration
	launched  map[int64]string  // answered: id → name
	attempted map[string]bool   // names
	stopped   map[int64]bool    // answered
	edited    map[int64][]int64 // answered: role → its peaks of memory, in order
	streams   int               // opened

	full []interval // the disk was
}

// interval is a time between two moments.
type interval struct{ from, until time.Time }

// crumb is what a workspace of the load takes.
var crumb = resources{GPUCores: 50, GPUMemoryMiB: 8 << 10, CPUMilli: 100, MemoryMiB: 128}

func newLoad(one, other *server, env int64) *load {
	one.t.Helper()
	l := &load{t: one.t.(*testing.T), servers: []*server{one, other}, env: env, over: make(chan struct{}),
		launched: map[int64]string{}, attempted: map[string]bool{}, stopped: map[int64]bool{}, edited: map[int64][]int64{}}
	var names []string
	for i := range soakers {
		names = append(names, fmt.Sprintf("soaker%d", i))
	}
	l.team = one.team("soak", crumb.times(2), names...)
	for i := range soakers {
		var role id
		one.api(one.admin()).must("POST", fmt.Sprintf("/projects/%d/roles", l.team.Project),
			map[string]any{"name": fmt.Sprintf("edited %d", i), "permission": "member", "limit": crumb}, &role)
		l.roles = append(l.roles, role.ID)
	}
	return l
}

func (l *load) ended() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// ask sends one request to a server; when the connection breaks or the server
// is not there it says so, and the caller goes to the other.
func (l *load) ask(at int, token, method, path string, body, out any) (status int) {
	began := time.Now()
	status, answer, err := l.servers[at%len(l.servers)].api(token).raw(method, path, body)
	if err == nil && status < 300 && out != nil {
		err = json.Unmarshal(answer, out)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	switch {
	case err != nil || slices.Contains([]int{http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusInsufficientStorage}, status):
		l.broken++
		return 0
	case status >= 500, status == http.StatusUnauthorized, status == http.StatusForbidden:
		l.faults = append(l.faults, fmt.Sprintf("%s %s: %d %s", method, path, status, answer))
	}
	l.took = append(l.took, time.Since(began))
	return status
}

// works is what one member does all the time, at both servers in turn.
func (l *load) works(number int, m member) {
	random := rand.New(rand.NewPCG(42, uint64(number)))
	var mine []int64
	for n := 0; !l.ended(); n++ {
		switch choice := random.IntN(10); {
		case choice < 2 && len(mine) < 2:
			if w, lost := l.launch(n, m, fmt.Sprintf("soak-%d-%d", number, n)); w != 0 {
				mine = append(mine, w)
			} else if lost {
				mine = l.live(n+1, m, mine)
			}
		case choice < 4 && len(mine) > 0:
			if l.stop(n, m, mine[0]) {
				mine = mine[1:]
			}
		case choice < 5:
			l.edit(n, l.roles[number], 64+int64(n))
		default:
			paths := []string{"/workspaces", "/projects", "/pool", "/me", fmt.Sprintf("/projects/%d", l.team.Project)}
			l.ask(n, m.token, "GET", paths[random.IntN(len(paths))], nil, nil)
		}
	}
}

// launch asks once: when the answer is lost nobody knows what came of it.
func (l *load) launch(n int, m member, name string) (workspace int64, lost bool) {
	l.mu.Lock()
	l.attempted[name] = true
	l.mu.Unlock()
	var w id
	body := launchBodyIn(l.team.Project, l.env, name)
	request := body["request"].(map[string]any)
	request["cpu_milli"], request["memory_mib"] = crumb.CPUMilli, crumb.MemoryMiB
	if status := l.ask(n, m.token, "POST", "/workspaces", body, &w); status == 0 || status >= 300 {
		return 0, status == 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.launched[w.ID] = name
	return w.ID, false
}

// live are the member's workspaces as a server knows them, or as before when
// it does not answer.
func (l *load) live(n int, m member, before []int64) (ids []int64) {
	var page struct {
		Items []struct {
			ID     int64 `json:"id"`
			UserID int64 `json:"user_id"`
		} `json:"items"`
	}
	if status := l.ask(n, m.token, "GET", "/workspaces", nil, &page); status != http.StatusOK {
		return before
	}
	for _, w := range page.Items {
		if w.UserID == m.User {
			ids = append(ids, w.ID)
		}
	}
	return ids
}

// stop asks until it is answered, and tells whether the workspace is no longer
// the member's concern.
func (l *load) stop(n int, m member, workspace int64) bool {
	status := l.ask(n, m.token, "POST", workspacePath(workspace)+"/stop", nil, nil)
	if status >= 200 && status < 300 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.stopped[workspace] = true
	}
	return status != 0
}

// edit sets the peak of a role that nobody else edits.
func (l *load) edit(n int, role, memory int64) {
	path := fmt.Sprintf("/projects/%d/roles/%d", l.team.Project, role)
	limit := crumb
	limit.MemoryMiB = memory
	body := map[string]any{"name": fmt.Sprintf("edited %d", role), "permission": "member", "limit": limit}
	if status := l.ask(n, l.servers[0].adminToken, "PUT", path, body, nil); status >= 200 && status < 300 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.edited[role] = append(l.edited[role], memory)
	}
}

// follows holds an event stream, at one server until it breaks and then at the
// other.
func (l *load) follows(number int, m member) {
	for n := number; !l.ended(); n++ {
		s := l.servers[n%len(l.servers)]
		r, err := http.NewRequest("GET", fmt.Sprintf("http://127.0.0.1:%d/events?topic=pool&topic=user:%d", s.port, m.User), nil)
		if err != nil {
			l.t.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+m.token)
		if l.reads(r) {
			l.mu.Lock()
			l.streams++
			l.mu.Unlock()
		}
	}
}

// reads takes what a stream tells until it breaks or the load is over, and
// tells whether it began.
func (l *load) reads(r *http.Request) bool {
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		select {
		case <-l.over:
		case <-time.After(100 * time.Millisecond): // as browsers do
		}
		return false
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b := make([]byte, 1024)
		for err := error(nil); err == nil; {
			_, err = res.Body.Read(b)
		}
	}()
	select {
	case <-l.over:
	case <-ended:
	}
	res.Body.Close()
	<-ended
	return res.StatusCode == http.StatusOK
}

// looks holds the load to the rules while it lasts.
func (l *load) looks() {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !l.ended() {
		l.rules()
		<-tick.C
	}
}

// rules checks rules 1 to 3 of the design in one snapshot each.
func (l *load) rules() {
	q := l.servers[0].books()
	shares, err := q.OpenSharesAmong(store.AllMachines)
	cores := map[int64]int64{}
	for _, s := range shares {
		if cores[s.DeviceID] += s.Cores; cores[s.DeviceID] > 100 {
			l.t.Errorf("device %d gives away %d cores", s.DeviceID, cores[s.DeviceID])
		}
	}
	sums, err2 := q.ProjectSums([]int64{l.team.Project})
	inUse, err3 := q.InUseByMembers(l.team.Project)
	if err != nil || err2 != nil || err3 != nil {
		l.t.Error(err, err2, err3)
		return
	}
	quota := crumb.times(2 * soakers)
	if s := sums[l.team.Project]; s.Allocated.GPUCores > quota.GPUCores || s.InUse.GPUCores > quota.GPUCores || s.InUse.MemoryMiB > quota.MemoryMiB {
		l.t.Errorf("of a quota of %d cores %d are allocated and %d in use", quota.GPUCores, s.Allocated.GPUCores, s.InUse.GPUCores)
	}
	for m, r := range inUse {
		if r.GPUCores > 2*crumb.GPUCores || r.MemoryMiB > 2*crumb.MemoryMiB {
			l.t.Errorf("member %d holds %+v", m, r)
		}
	}
}

// figures are what the load measured.
func (l *load) figures() string {
	slices.Sort(l.took)
	at := func(share float64) time.Duration {
		if len(l.took) == 0 {
			return 0
		}
		return l.took[int(share*float64(len(l.took)-1))].Round(time.Millisecond)
	}
	edits := 0
	for _, values := range l.edited {
		edits += len(values)
	}
	return fmt.Sprintf("%d requests, %d broken (%.2f %%), p50 %s, p99 %s, longest %s; answered: %d launches, %d stops, %d edits; %d streams",
		l.requests, l.broken, 100*float64(l.broken)/float64(max(l.requests, 1)), at(0.5), at(0.99), at(1),
		len(l.launched), len(l.stopped), edits, l.streams)
}

// check looks for everything that was answered.
func (l *load) check(t *testing.T) {
	t.Helper()
	for _, fault := range l.faults[:min(len(l.faults), 10)] {
		t.Errorf("of %d faults: %s", len(l.faults), fault)
	}
	if len(l.launched) == 0 || len(l.stopped) == 0 || len(l.edited) == 0 || l.streams == 0 {
		t.Error("the load did nothing")
	}
	admin := l.servers[1].api(l.servers[1].adminToken)
	audit := auditOf(admin)
	l.checkWorkspaces(t, admin, audit)
	l.checkRoles(t, admin, audit)
}

func (l *load) checkWorkspaces(t *testing.T, admin api, audit audited) {
	t.Helper()
	there, names := map[int64]workspace{}, map[string]int{}
	for _, w := range list[workspace](admin, "/workspaces?state=all") {
		there[w.ID] = w
		if w.ProjectID != l.team.Project {
			continue
		}
		if names[w.Name]++; names[w.Name] > 1 || !l.attempted[w.Name] {
			t.Errorf("%s: %d workspaces, attempted: %v", w.Name, names[w.Name], l.attempted[w.Name])
		}
		wrote := slices.ContainsFunc(l.full, func(i interval) bool { return !w.EndedAt.Before(i.from) && w.EndedAt.Before(i.until) })
		if w.State == "failed" && !wrote { // a notebook that starts has to write
			t.Errorf("workspace %d failed: %s", w.ID, w.Reason)
		}
	}
	for id, name := range l.launched {
		if n := audit.count("launch", "workspace", id); there[id].Name != name || n != 1 {
			t.Errorf("%s was launched as %d: %+v, %d entries in the audit", name, id, there[id], n)
		}
	}
	for id := range l.stopped {
		if n := audit.count("stop", "workspace", id); !there[id].ended() || n != 1 {
			t.Errorf("%d was stopped: %+v, %d entries in the audit", id, there[id], n)
		}
	}
}

func (l *load) checkRoles(t *testing.T, admin api, audit audited) {
	t.Helper()
	limits := map[int64]int64{}
	for _, r := range list[struct {
		ID    int64     `json:"id"`
		Limit resources `json:"limit"`
	}](admin, fmt.Sprintf("/projects/%d/roles", l.team.Project)) {
		limits[r.ID] = r.Limit.MemoryMiB
	}
	for role, values := range l.edited {
		if last := values[len(values)-1]; limits[role] < last { // each edit sets more than the one before
			t.Errorf("role %d has a limit of %d MiB, and was given %d", role, limits[role], last)
		}
		found := audit.limits(role)
		for _, v := range values {
			if !found[v] {
				t.Errorf("role %d was given a limit of %d MiB, which the audit does not know", role, v)
			}
		}
	}
}

// entry of the audit as the API shows it.
type entry struct {
	Action   string          `json:"action"`
	Object   string          `json:"object"`
	ObjectID int64           `json:"object_id"`
	After    json.RawMessage `json:"after"`
}

// audited is the whole audit.
type audited []entry

func auditOf(admin api) audited { return list[entry](admin, "/audit?limit=200") }

func (all audited) count(action, object string, id int64) (n int) {
	for _, e := range all {
		if e.Action == action && e.Object == object && e.ObjectID == id {
			n++
		}
	}
	return n
}

// peaks are the peaks of memory that a role was given.
func (all audited) limits(role int64) map[int64]bool {
	found := map[int64]bool{}
	for _, e := range all {
		var after struct{ Limit resources }
		if e.Action == "update" && e.Object == "role" && e.ObjectID == role && json.Unmarshal(e.After, &after) == nil {
			found[after.Limit.MemoryMiB] = true
		}
	}
	return found
}

// settle stops what is left and waits until all has ended.
func settle(t *testing.T, l *load) {
	t.Helper()
	l.servers[0].stopWorkspaces()
	for _, s := range l.servers {
		if !s.running() {
			t.Fatal("a server does not run")
		}
	}
}
