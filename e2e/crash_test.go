package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/models/store/storetest"
)

// reconcilePeriod is within how long of a start, on a busy machine, nothing may run that no row
// knows of: the search for such processes comes round every five seconds.
const reconcilePeriod = 3 * time.Minute

func TestFiveSurviveKill(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, o options) {
		s := newServer(t, o)
		team := s.team("survivors", share.times(3), "ada", "ben")
		ada, ben := team.Members[0], team.Members[1]
		var ids []int64
		for i := range 5 {
			m := team.Members[i%2]
			ids = append(ids, m.launch(team.Project, 0, fmt.Sprint("nb-", i)))
		}
		for i, w := range ids {
			team.Members[i%2].await(w, "running", starting)
		}
		nb := ada.open(ids[0])
		if got := nb.execute("remembered = 6 * 7\nprint('ok')"); got != "ok\n" {
			t.Fatalf("the cell printed %q", got)
		}
		before := s.sandboxes()
		notebooks := map[int64]int{}
		for _, w := range ids {
			notebooks[w] = s.jupyter(w)
		}

		s.kill()
		s.start()

		s.awaitAgreement(reconcilePeriod)
		if after := s.sandboxes(); !maps.EqualFunc(before, after, slices.Equal) || len(after) != 5 {
			t.Errorf("processes were %v and are %v", before, after)
		}
		for i, w := range ids {
			if now := team.Members[i%2].workspace(w); now.State != "running" {
				t.Errorf("workspace %d is %s: %s", w, now.State, now.Reason)
			}
			if now := s.jupyter(w); now != notebooks[w] {
				t.Errorf("the notebook of workspace %d was process %d and is %d", w, notebooks[w], now)
			}
		}
		// The visit from before the crash is good as well.
		if got := nb.execute("print(remembered)"); got != "42\n" {
			t.Errorf("the kernel printed %q; it has forgotten", got)
		}
		if status, body := ben.open(ids[1]).call("GET", "/api/status", ""); status != 200 {
			t.Errorf("another notebook answers %d %s", status, body)
		}
	})
}

func TestNotebookKilled(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{})
	team := s.team("fragile", share, "ada")
	ada := team.Members[0]
	w := ada.running(team.Project, "nb")
	if err := syscall.Kill(s.jupyter(w.ID), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var now workspace
	eventually(t, gone, func() string {
		if now = ada.workspace(w.ID); now.State == "failed" {
			return ""
		}
		return "the workspace is " + now.State
	})
	if !strings.Contains(now.Reason, "killed by signal 9") {
		t.Errorf("the reason is %q", now.Reason)
	}
	if now.LogTail == "" || strings.Contains(now.LogTail, "token=") && !strings.Contains(now.LogTail, "[token]") {
		t.Errorf("the log ends with %q", now.LogTail)
	}
	if inUse := ada.inUse(); len(inUse) != 0 {
		t.Errorf("still in use: %v", inUse)
	}
	s.awaitAgreement(reconcilePeriod)
	if again := ada.running(team.Project, "nb"); again.ID == w.ID {
		t.Errorf("the workspace launched again is %d, too", again.ID)
	}
}

// A server that dies at any step leaves nothing behind that its successor
// does not put right.
func TestFailpoints(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"start.intent", "start.launched", "start.ready", "restart.gone", "stop.gone"} {
		t.Run(step, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, o options) { dieAt(t, o, step) })
		})
	}
}

func dieAt(t *testing.T, o options, step string) {
	s := newServer(t, o)
	team := s.team("unlucky", share.times(2), "ada")
	ada := team.Members[0]
	var env int64 // Jupyter
	if o.database != "" {
		env = s.standIn(t) // it is the books that are another's here
	}
	other := ada.await(ada.launch(team.Project, env, "bystander"), "running", starting)
	otherAt := s.sandboxes()
	stopping, restarting := strings.HasPrefix(step, "stop."), strings.HasPrefix(step, "restart.")
	var victim int64
	if stopping || restarting {
		victim = ada.await(ada.launch(team.Project, env, "victim"), "running", starting).ID
	}

	s.stop()
	s.start("WEIR_FAILPOINT=" + step)
	switch {
	case stopping:
		ada.call("POST", workspacePath(victim)+"/stop", nil, nil)
	case restarting:
		ada.call("POST", workspacePath(victim)+"/restart", nil, nil)
	default:
		ada.call("POST", "/workspaces", launchBodyIn(team.Project, env, "victim"), nil)
	}
	if code := s.wait(); code != -1 {
		t.Fatalf("the server ended with exit code %d and not at %s", code, step)
	}

	s.start()
	s.awaitAgreement(reconcilePeriod)
	for _, w := range list[workspace](s.api(s.admin()), "/workspaces?state=all") {
		if w.Name == "victim" {
			victim = w.ID
		}
	}
	want := "running"
	if stopping {
		want = "stopped"
	}
	ada.await(victim, want, starting)
	s.awaitAgreement(reconcilePeriod)
	if now := ada.workspace(other.ID); now.State != "running" {
		t.Errorf("the bystander is %s: %s", now.State, now.Reason)
	}
	for k, pids := range otherAt {
		if now := s.sandboxes()[k]; !slices.Equal(now, pids) {
			t.Errorf("the bystander's processes were %v and are %v", pids, now)
		}
	}
}

// A server that is killed again and again at moments of chance, while its
// members launch and stop, loses nothing: whatever was asked for runs or has
// stopped, and nothing has failed.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, o options) {
		s := newServer(t, o)
		team := s.team("storm", share.times(12), "ada")
		ada := team.Members[0]
		env := s.standIn(t)
		launched := map[string]bool{}
		for round := range 6 {
			running := list[workspace](ada.api, "/workspaces")
			killed := make(chan struct{})
			moment := time.NewTimer(time.Duration(rand.IntN(400)) * time.Millisecond)
			go func() {
				defer close(killed)
				<-moment.C
				s.kill()
			}()
			for _, name := range upset(ada, running, team.Project, env, round) {
				launched[name] = true
			}
			<-killed
			s.start()
			s.awaitAgreement(reconcilePeriod)
		}
		found := map[string]bool{}
		eventually(t, starting, func() string {
			for _, w := range list[workspace](ada.api, "/workspaces?state=all") {
				found[w.Name] = true
				if w.State != "running" && w.State != "stopped" {
					return fmt.Sprintf("workspace %d is %s: %s", w.ID, w.State, w.Reason)
				}
			}
			return ""
		})
		for name := range launched {
			if !found[name] {
				t.Errorf("the launch of %s was accepted, and is lost", name)
			}
		}
		s.awaitAgreement(reconcilePeriod)
	})
}

// upset stops what runs and launches as much, all at once, and returns the
// names of what was accepted. That the server dies meanwhile is expected.
func upset(ada member, running []workspace, project, env int64, round int) (accepted []string) {
	var mu sync.Mutex
	storetest.Concurrently(len(running)+4, func(i int) {
		if i < len(running) {
			_, _, _ = ada.raw("POST", workspacePath(running[i].ID)+"/stop", nil)
			return
		}
		body := launchBodyIn(project, env, fmt.Sprintf("nb-%d-%d", round, i))
		if status, _, err := ada.raw("POST", "/workspaces", body); err == nil && status == 201 {
			mu.Lock()
			defer mu.Unlock()
			accepted = append(accepted, body["name"].(string))
		}
	})
	return accepted
}

// A request with an Idempotency-Key that is sent again after a crash is carried out, if
// it was not, and never twice.
func TestRetryAfterCrash(t *testing.T) {
	t.Parallel()
	for step, status := range map[string]int{"request.applied": 201, "request.committed": 409} {
		t.Run(step, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, o options) { retryAfter(t, o, step, status) })
		})
	}
}

func retryAfter(t *testing.T, o options, step string, status int) {
	s := newServer(t, o)
	team := s.team("careful", share.times(2), "ada")
	ada := team.Members[0]
	env := s.standIn(t)
	post := func() (int, string) {
		return ada.keyed("nightly", "/workspaces", launchBodyIn(team.Project, env, "victim"))
	}
	s.stop()
	s.start("WEIR_FAILPOINT=" + step)
	if got, body := post(); got != 0 {
		t.Fatalf("the server answers %d %s", got, body)
	}
	if code := s.wait(); code != -1 {
		t.Fatalf("the server ended with exit code %d and not at %s", code, step)
	}
	s.start()
	if got, body := post(); got != status || status == 409 && !strings.Contains(body, "was carried out") {
		t.Errorf("the retry gets %d %s", got, body)
	}
	if status == 201 {
		if got, body := post(); got != status {
			t.Errorf("the third request gets %d %s", got, body)
		}
	}
	if all := list[workspace](s.api(s.admin()), "/workspaces?state=all"); len(all) != 1 {
		t.Errorf("%d workspaces", len(all))
	}
}
