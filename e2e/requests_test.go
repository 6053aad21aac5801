package e2e

import (
	"fmt"
	"testing"
)

// request as the API shows it.
type request struct {
	ID        int64  `json:"id"`
	State     string `json:"state"`
	ProjectID int64  `json:"project_id"`
}

func requestPath(n int64) string { return fmt.Sprintf("/requests/%d", n) }

// A server that dies in the middle of a decision has done all of it, or
// nothing.
func TestDecisionIsDoneWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"decide.applied", "decide.committed"} {
		t.Run(step, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, o options) { dieDeciding(t, o, step) })
		})
	}
}

func dieDeciding(t *testing.T, o options, step string) {
	s := newServer(t, o)
	team := s.team("askers", share, "ada")
	ada, admin := team.Members[0], s.api(s.admin())
	var quota, fresh request
	ada.must("POST", "/requests", map[string]any{"reason": "more", "quota": map[string]any{"project_id": team.Project, "quota": share.times(2)}}, &quota)
	ada.must("POST", "/requests", map[string]any{"reason": "a team", "project": map[string]any{"name": "fresh", "quota": share, "limit": share}}, &fresh)

	s.stop()
	for _, r := range []request{quota, fresh} {
		s.start("WEIR_FAILPOINT=" + step)
		approve := map[string]any{"decision": "approve", "confirm": true, "reason": "so be it"}
		admin.call("POST", requestPath(r.ID)+"/decision", approve, nil)
		if code := s.wait(); code != -1 {
			t.Fatalf("the server ended with exit code %d and not at %s", code, step)
		}
		s.start()
		if step == "decide.applied" {
			s.nothingDecided(ada, r)
			admin.must("POST", requestPath(r.ID)+"/decision", approve, nil)
		}
		s.decided(ada, r, team.Project)
		s.stop()
	}
}

// trace counts what a decision leaves behind beside the request itself.
func (s *server) trace(ada member, r request) (approvals, notifications int) {
	s.t.Helper()
	for _, e := range list[struct {
		ObjectID int64 `json:"object_id"`
	}](s.api(s.admin()), "/audit?object=request&action=approve") {
		if e.ObjectID == r.ID {
			approvals++
		}
	}
	for _, n := range list[struct {
		Path string `json:"path"`
	}](ada.api, "/notifications") {
		if n.Path == requestPath(r.ID) {
			notifications++
		}
	}
	return approvals, notifications
}

func (s *server) nothingDecided(ada member, r request) {
	s.t.Helper()
	var now request
	ada.must("GET", requestPath(r.ID), nil, &now)
	approvals, notifications := s.trace(ada, r)
	if now.State != "pending" || approvals != 0 || notifications != 0 {
		s.t.Errorf("request %d is %s, with %d entries of the audit and %d notifications", r.ID, now.State, approvals, notifications)
	}
	if projects := list[id](ada.api, "/projects"); len(projects) != 1 {
		s.t.Errorf("there are %d projects", len(projects))
	}
}

func (s *server) decided(ada member, r request, project int64) {
	s.t.Helper()
	var now request
	ada.must("GET", requestPath(r.ID), nil, &now)
	approvals, notifications := s.trace(ada, r)
	if now.State != "approved" || approvals != 1 || notifications != 1 {
		s.t.Errorf("request %d is %s, with %d entries of the audit and %d notifications", r.ID, now.State, approvals, notifications)
	}
	want := share
	if now.ProjectID == project {
		want = share.times(2)
	}
	var p struct{ Quota resources }
	ada.must("GET", fmt.Sprintf("/projects/%d", now.ProjectID), nil, &p)
	if p.Quota != want {
		s.t.Errorf("the quota of project %d is %+v, not %+v", now.ProjectID, p.Quota, want)
	}
}
