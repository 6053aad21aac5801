//go:build cluster

package clustertest

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir/models"
	"weir/workspaces/kube"
	"weir/workspaces/runtime"
)

// A life of a workspace costs the API server few requests, and the project's
// objects none after the first.
func TestRequests(t *testing.T) {
	c := config(t)
	count := &counter{}
	c.Rest.Wrap(func(next http.RoundTripper) http.RoundTripper {
		count.next = next
		return count
	})
	r := open(t, c)
	first := start(t, r, notebook())
	until(t, r, first, "running", is(runtime.PhaseRunning))
	t.Logf("the first start: %d requests", len(count.take()))
	second := notebook()
	second.Workspace = 2
	state := start(t, r, second)
	until(t, r, state, "running", is(runtime.PhaseRunning))
	if err := r.Stop(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	until(t, r, state, "exited", is(runtime.PhaseExited))
	seen := count.take()
	t.Logf("the second life: %d requests: %s", len(seen), strings.Join(seen, ", "))
	patches := 0
	for _, request := range seen {
		if strings.HasPrefix(request, "PATCH ") {
			patches++
		}
	}
	if patches != 3 {
		t.Errorf("a start applied %d objects instead of its pod, secret and service", patches)
	}
}

// What a start made goes with it.
func TestNothingIsLeft(t *testing.T) {
	c := config(t)
	r, admin := open(t, c), administrator(t)
	state := start(t, r, script("exec sleep 600"))
	ns := c.Prefix + "7"
	if n := left(t, admin, ns); n != 3 {
		t.Errorf("%d objects instead of a pod, a secret and a service", n)
	}
	eventually(t, func() string { return "objects are left" }, func() bool {
		if err := r.Stop(t.Context(), state); err != nil {
			t.Fatal(err)
		}
		return left(t, admin, ns) == 0
	})
}

// The node gives out the cores that were advertised and no more, and the
// member reads why it has to wait.
func TestOvercommitment(t *testing.T) {
	r, at := open(t, config(t)), node(t)
	t.Cleanup(func() {
		if _, err := r.Advertise(t.Context(), nil); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	unknown, err := r.Advertise(t.Context(), map[string]int64{at: 100, "elsewhere": 800})
	if err != nil || len(unknown) != 1 || unknown[0] != "elsewhere" {
		t.Fatalf("unknown %v, %v", unknown, err)
	}
	holder := func(id int64) runtime.Spec {
		s := script("echo on $NVIDIA_VISIBLE_DEVICES; exec sleep 600")
		s.Workspace, s.Node = id, at
		s.GPUs = []runtime.GPU{{UUID: "GPU-1", Cores: 60, Simulated: true, Enforcement: models.EnforcedAdvisory}}
		return s
	}
	first := start(t, r, holder(1))
	until(t, r, first, "sees its GPU", func(s runtime.Status) bool { return strings.Contains(s.LogTail, "on GPU-1") })
	second := start(t, r, holder(2))
	until(t, r, second, "waits", says("Insufficient weir.dev/gpu-cores"))
	if err := r.Stop(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	until(t, r, second, "runs", func(s runtime.Status) bool { return s.LogTail != "" })
}

func TestWhatTheNodeSays(t *testing.T) {
	r := open(t, config(t))
	missing := script("exec sleep 600")
	missing.Workspace, missing.Image = 1, "weir.invalid/no-such-image:1"
	greedy := script(`exec python3 -c "x = b'x' * (1 << 30)"`)
	greedy.Workspace, greedy.Memory = 2, 128
	stray := script("exec sleep 600")
	stray.Workspace, stray.Node = 3, "no-such-node"
	absent, memory, pinned := start(t, r, missing), start(t, r, greedy), start(t, r, stray)
	until(t, r, absent, "no image", says("does not have the image weir.invalid/no-such-image:1"))
	until(t, r, pinned, "no node", says("No node in the cluster can run the pod now"))
	s := until(t, r, memory, "out of memory", is(runtime.PhaseExited))
	if !says("memory limit of 128 MiB exceeded")(s) {
		t.Errorf("code %d: %s\n%s", s.ExitCode, s.Message, s.LogTail)
	}
}

// The shell's own dollars reach it.
func TestDollars(t *testing.T) {
	r := open(t, config(t))
	s := script(`WORD=kept; echo "$WORD, $(echo run), $${WORD}"; env; exec sleep 600`)
	s.Env = map[string]string{"PRICE": "$(HOME)$$"}
	state := start(t, r, s)
	got := until(t, r, state, "printed", func(s runtime.Status) bool { return strings.Contains(s.LogTail, "HOME=") }).LogTail
	for _, want := range []string{"kept, run, ", "PRICE=$(HOME)$$", "HOME=/home/jovyan", "NB_USER=jovyan", "JUPYTER_TOKEN=[token]"} {
		if !strings.Contains(got, want) {
			t.Errorf("without %q:\n%s", want, got)
		}
	}
}

// Others' changes to a project's objects do not last.
func TestDrift(t *testing.T) {
	c := config(t)
	r, admin := open(t, c), administrator(t)
	start(t, r, script("exec sleep 600"))
	ns := c.Prefix + "7"
	policies := admin.NetworkingV1().NetworkPolicies(ns)
	if err := policies.Delete(t.Context(), "default-deny", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string { return "the policy is not back" }, func() bool {
		_, err := policies.Get(t.Context(), "default-deny", metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	space, err := admin.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	space.Labels["pod-security.kubernetes.io/enforce"] = "privileged"
	if _, err := admin.CoreV1().Namespaces().Update(t.Context(), space, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string { return "the namespace stays privileged" }, func() bool {
		space, err := admin.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		return err == nil && space.Labels["pod-security.kubernetes.io/enforce"] == "restricted"
	})
}

// The namespace itself refuses what is not restricted, whoever asks.
func TestNamespaceIsRestricted(t *testing.T) {
	c := config(t)
	r, admin := open(t, c), administrator(t)
	start(t, r, script("exec sleep 600"))
	_, err := admin.CoreV1().Pods(c.Prefix+"7").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "rooted"},
		Spec: corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Name: "c", Image: harness.Image}}}}, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PodSecurity") {
		t.Errorf("a pod on the node's network: %v", err)
	}
}

// A project's part of the cluster is a limit of its own.
func TestQuota(t *testing.T) {
	c := config(t)
	c.Quota = func(context.Context, int64) (kube.Quota, error) { return kube.Quota{Workspaces: 1}, nil }
	r := open(t, c)
	start(t, r, script("exec sleep 600"))
	s := script("exec sleep 600")
	s.Workspace = 2
	// The quota counts what exists once its controller has looked.
	_, err := r.Start(t.Context(), s)
	if models.KindOf(err) != models.KindUnavailable || !strings.Contains(err.Error(), "quota in the cluster is exhausted") {
		t.Errorf("a second workspace: %v", err)
	}
}

// Whoever removes a project's namespace ends what runs in it, and no more.
func TestNamespaceRemovedByOthers(t *testing.T) {
	c := config(t)
	r, admin := open(t, c), administrator(t)
	dir := share(t)
	first := script("echo kept >/public_model/mark; exec sleep 600")
	first.Mounts = []models.Mount{{Source: dir, Target: "/public_model"}}
	state := start(t, r, first)
	eventually(t, func() string { return "nothing was written" }, func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "mark"))
		return err == nil && string(b) == "kept\n"
	})
	if err := admin.CoreV1().Namespaces().Delete(t.Context(), c.Prefix+"7", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, r, state, "exited", is(runtime.PhaseExited))
	eventually(t, func() string { return "the namespace is still there" }, func() bool {
		_, err := admin.CoreV1().Namespaces().Get(t.Context(), c.Prefix+"7", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	again := script("cat /public_model/mark; exec sleep 600")
	again.Generation, again.Mounts = 2, first.Mounts
	until(t, r, start(t, r, again), "finds what was written", func(s runtime.Status) bool { return strings.Contains(s.LogTail, "kept") })
}
