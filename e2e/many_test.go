package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"weir/models/store/storetest"
)

// Fifty launches at once by five members of two projects. By their roles the
// members may run 3 × 2 and 2 × 2 workspaces of half a GPU; there are three
// GPUs, and a GPU serves one project. A project that has a GPU fills it
// before it takes another, and whoever is refused finds the pool no emptier
// later: whichever project gets one, two or three GPUs, six workspaces run.
func TestFiftyLaunches(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, o options) {
		o.gpus = "h100:3"
		s := newServer(t, o)
		red := s.team("red", share.times(2), "ada", "ben", "cyd")
		blue := s.team("blue", share.times(2), "dot", "eli")
		var env int64 // Jupyter
		if o.database != "" {
			env = s.standIn(t)
		}
		type caller struct {
			member
			project int64
		}
		var callers []caller
		for _, m := range red.Members {
			callers = append(callers, caller{m, red.Project})
		}
		for _, m := range blue.Members {
			callers = append(callers, caller{m, blue.Project})
		}
		const launches, admissible = 50, 6
		var results outcomes
		s.watched(func() {
			storetest.Concurrently(launches, func(i int) {
				c := callers[i%len(callers)]
				results.add(c.raw("POST", "/workspaces", launchBodyIn(c.project, env, fmt.Sprint("nb-", i))))
			})
		})
		results.want(t, admissible, launches-admissible)
		admin := s.api(s.admin())
		inUse := admin.inUse()
		if len(inUse) != admissible {
			t.Errorf("shares are in use by %v", inUse)
		}
		perMember := map[string]int64{}
		for _, w := range list[owned](admin, "/workspaces") {
			perMember[w.User] += inUse[w.ID]
		}
		for name, cores := range perMember {
			if cores > 2*share.GPUCores {
				t.Errorf("%s holds %d cores, more than the role's limit", name, cores)
			}
		}
		for _, p := range admin.projects() {
			if p.InUse.GPUCores > p.Quota.GPUCores || p.InUse.MemoryMiB > p.Quota.MemoryMiB {
				t.Errorf("project %d holds %+v of %+v", p.ID, p.InUse, p.Quota)
			}
		}
		for _, w := range list[owned](admin, "/workspaces") {
			admin.await(w.ID, "running", starting)
		}
		s.awaitAgreement(reconcilePeriod)
	})
}

type owned struct {
	ID   int64  `json:"id"`
	User string `json:"user"`
}

// A launch that is sent again and again is one launch.
func TestRepeatedLaunch(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, o options) {
		s := newServer(t, o)
		team := s.team("hasty", share.times(10), "ada")
		ada := team.Members[0]
		body := launchBodyIn(team.Project, s.standIn(t), "nb")
		var results outcomes
		storetest.Concurrently(10, func(int) { results.add(ada.raw("POST", "/workspaces", body)) })
		results.want(t, 1, 9)
		s.awaitAgreement(reconcilePeriod)
		w := list[workspace](ada.api, "/workspaces")
		if len(w) != 1 || w[0].Name != "nb" {
			t.Fatalf("there are %v", w)
		}
		ada.await(w[0].ID, "running", starting)

		var stops outcomes
		storetest.Concurrently(10, func(int) { stops.add(ada.raw("POST", workspacePath(w[0].ID)+"/stop", nil)) })
		stops.want(t, 1, 9)
		ada.await(w[0].ID, "stopped", gone)
		s.awaitAgreement(reconcilePeriod)
	})
}

// watched looks at the pool again and again while act is under way: what must
// be true of every device is true at every moment.
func (s *server) watched(act func()) {
	s.t.Helper()
	admin := s.api(s.admin())
	done := make(chan struct{})
	go func() {
		defer close(done)
		act()
	}()
	for {
		admin.devices()
		select {
		case <-done:
			return
		default:
		}
	}
}

// outcomes counts how many calls were accepted, and keeps what the others
// were told.
type outcomes struct {
	mu       sync.Mutex
	accepted int
	refused  []string // each with a reason
	odd      []string
}

func (o *outcomes) add(status int, body []byte, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var p problem
	switch {
	case err == nil && (status == http.StatusCreated || status == http.StatusAccepted):
		o.accepted++
	case err == nil && (status == http.StatusConflict || status == http.StatusUnprocessableEntity) &&
		json.Unmarshal(body, &p) == nil && p.Detail != "" && (p.Kind == "conflict" || len(p.Errors) > 0 && p.Errors[0].Reason != ""):
		o.refused = append(o.refused, p.Detail)
	default:
		o.odd = append(o.odd, fmt.Sprintf("%d %s %v", status, body, err))
	}
}

// want holds the outcomes to so many accepted and so many refused with a
// reason.
func (o *outcomes) want(t *testing.T, accepted, refused int) {
	t.Helper()
	if o.accepted != accepted || len(o.refused) != refused || len(o.odd) > 0 {
		t.Errorf("%d accepted, %d refused; want %d and %d; otherwise: %v; refusals: %v",
			o.accepted, len(o.refused), accepted, refused, o.odd, o.refused)
	}
}
