//go:build cluster

package e2e

import "strings"

// clusterSteps are the steps at which a server that drives a cluster is killed.
var clusterSteps = []string{"start.intent", "kube.namespace", "kube.pod", "kube.secret", "start.launched", "start.ready", "restart.gone", "kube.deleted", "stop.gone"}

// diesAt kills the server at a step of a start or a stop. Its successor takes
// up what was begun; what ran meanwhile is not touched.
func (f *faultyPortal) diesAt(step string) {
	other := f.running("bystander")
	before, _ := f.objects()
	stopping := step == "kube.deleted" || strings.HasPrefix(step, "stop.")
	restarting := strings.HasPrefix(step, "restart.")
	var victim int64
	if stopping || restarting {
		victim = f.running("victim").ID
	}

	f.stop()
	f.start("WEIR_FAILPOINT=" + step)
	switch {
	case stopping:
		f.ada.call("POST", workspacePath(victim)+"/stop", nil, nil)
	case restarting:
		f.ada.call("POST", workspacePath(victim)+"/restart", nil, nil)
	default:
		f.ada.call("POST", "/workspaces", launchBodyIn(f.team.Project, f.env, "victim"), nil)
	}
	if code := f.wait(); code != -1 {
		f.t.Fatalf("the server ended with exit code %d and not at %s", code, step)
	}

	f.start()
	for _, w := range list[workspace](f.api(f.admin()), "/workspaces?state=all") {
		if w.Name == "victim" {
			victim = w.ID
		}
	}
	want := "running"
	if stopping {
		want = "stopped"
	}
	f.ada.await(victim, want, starting)
	f.agrees(starting)
	after, _ := f.objects()
	for name, pod := range before {
		if after[name].UID != pod.UID {
			f.t.Errorf("the bystander's pod is another one after the crash")
		}
	}
	f.ada.await(other.ID, "running", gone)
}
