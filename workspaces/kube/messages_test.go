package kube

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir/workspaces/runtime"
)

// seen is a pod as an API server tells it, changed by the cases.
func seen(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "ws-5-2", Namespace: "weir-p-7"},
		Spec: corev1.PodSpec{NodeName: "node-a", Containers: []corev1.Container{{Name: containerName, Image: "weir/jupyter:1",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("2Gi"), "cpu": resource.MustParse("1500m")}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending}}
	if change != nil {
		change(p)
	}
	return p
}

func inUse(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
}

func runs(started bool) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase, p.Status.PodIP = corev1.PodRunning, "10.88.0.7"
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "sidecar"}, {Name: containerName, Started: &started, Ready: started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
}

var ended = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func exits(code int32, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: metav1.NewTime(ended)}}}}
	}
}

func fails(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, reason, message
	}
}

func with(change func(*corev1.Pod), conditions ...corev1.PodCondition) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if change != nil {
			change(p)
		}
		p.Status.Conditions = conditions
	}
}

func unscheduled(p *corev1.Pod) { p.Spec.NodeName = "" }

func disrupted(reason, message string) corev1.PodCondition {
	return corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message}
}

func TestDescribe(t *testing.T) {
	for name, test := range map[string]struct {
		pod     func(*corev1.Pod)
		events  []corev1.Event
		phase   runtime.Phase
		percent int
		code    int
		says    string
	}{
		"new": {pod: unscheduled, phase: runtime.PhaseStarting, percent: 10, code: -1, says: "choosing a node"},
		"unschedulable": {pod: with(unscheduled, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
			Message: "0/3 nodes are available: 1 Insufficient weir.dev/gpu-cores, 2 node(s) didn't match Pod's node affinity/selector."}),
			phase: runtime.PhaseStarting, percent: 10, code: -1, says: "No node in the cluster can run the pod now: 0/3 nodes are available: 1 Insufficient weir.dev/gpu-cores"},
		"scheduled":      {phase: runtime.PhaseStarting, percent: 30, code: -1, says: "preparing"},
		"creating":       {pod: inUse("ContainerCreating", ""), phase: runtime.PhaseStarting, percent: 30, code: -1, says: "preparing"},
		"pulling":        {pod: inUse("ContainerCreating", ""), events: []corev1.Event{event("Scheduled", "", 1), event("Pulling", "", 2)}, phase: runtime.PhaseStarting, percent: 30, code: -1, says: "pulling the image weir/jupyter:1"},
		"no such mount":  {pod: inUse("ContainerCreating", ""), events: []corev1.Event{event("FailedMount", "mount.nfs: Connection timed out", 3), event("Scheduled", "", 1)}, phase: runtime.PhaseStarting, percent: 30, code: -1, says: "cannot mount the shared directories: mount.nfs: Connection timed out"},
		"no sandbox":     {events: []corev1.Event{event("FailedCreatePodSandBox", "no network", 3)}, phase: runtime.PhaseStarting, percent: 30, code: -1, says: "cannot set up the pod: no network"},
		"pull error":     {pod: inUse("ErrImagePull", "rpc error:\n  not found"), phase: runtime.PhaseStarting, percent: 30, code: -1, says: "The image weir/jupyter:1 cannot be pulled: rpc error: not found"},
		"pull back-off":  {pod: inUse("ImagePullBackOff", "Back-off pulling image"), phase: runtime.PhaseStarting, percent: 30, code: -1, says: "cannot be pulled: Back-off"},
		"never pull":     {pod: inUse("ErrImageNeverPull", ""), phase: runtime.PhaseStarting, percent: 30, code: -1, says: "does not allow pulling it"},
		"bad name":       {pod: inUse("InvalidImageName", ""), phase: runtime.PhaseStarting, percent: 30, code: -1, says: "is not a valid image name"},
		"no secret":      {pod: inUse("CreateContainerConfigError", `secret "ws-5-2" not found`), phase: runtime.PhaseStarting, percent: 30, code: -1, says: `cannot set up the pod: secret "ws-5-2" not found`},
		"runc":           {pod: inUse("RunContainerError", "exec: no such file"), phase: runtime.PhaseStarting, percent: 30, code: -1, says: "cannot start the pod: exec: no such file (RunContainerError)"},
		"not yet":        {pod: runs(false), phase: runtime.PhaseStarting, percent: 70, code: -1, says: "Jupyter is starting"},
		"running":        {pod: runs(true), phase: runtime.PhaseRunning, percent: 100, code: -1, says: "Jupyter is running"},
		"node silent":    {pod: with(runs(true), corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}), phase: runtime.PhaseRunning, percent: 100, code: -1, says: "The node node-a is not responding"},
		"just started":   {pod: with(func(p *corev1.Pod) { runs(true)(p); p.Status.ContainerStatuses[1].Ready = false }, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}), phase: runtime.PhaseRunning, percent: 100, code: -1, says: "Jupyter is running"},
		"drained":        {pod: with(runs(true), disrupted("EvictionByEvictionAPI", "")), phase: runtime.PhaseRunning, percent: 100, code: -1, says: "drained by a cluster administrator"},
		"exit 3":         {pod: exits(3, "Error"), phase: runtime.PhaseExited, code: 3, says: "Jupyter exited with code 3"},
		"exit 0":         {pod: exits(0, "Completed"), phase: runtime.PhaseExited, code: 0, says: "Jupyter exited with code 0"},
		"killed":         {pod: exits(137, "Error"), phase: runtime.PhaseExited, code: 137, says: "killed by signal 9"},
		"out of memory":  {pod: exits(137, "OOMKilled"), phase: runtime.PhaseExited, code: 137, says: "Jupyter was killed: memory limit of 2 GiB exceeded"},
		"cannot exec":    {pod: exits(128, "StartError"), phase: runtime.PhaseExited, code: 128, says: "could not be started"},
		"evicted":        {pod: fails("Evicted", "The node was low on resource: memory."), phase: runtime.PhaseExited, code: -1, says: "The node evicted the pod: The node was low on resource: memory."},
		"overcommitted":  {pod: fails("OutOfweir.dev/gpu-cores", "Pod was rejected: Node didn't have enough resource: weir.dev/gpu-cores, requested: 100, used: 50, capacity: 100"), phase: runtime.PhaseExited, code: -1, says: "The node node-a rejected the pod: Pod was rejected"},
		"node lost":      {pod: fails("NodeLost", ""), phase: runtime.PhaseExited, code: -1, says: "The node node-a was lost"},
		"shut down":      {pod: fails("Terminated", "imminent node shutdown"), phase: runtime.PhaseExited, code: -1, says: "was shut down"},
		"preempted":      {pod: with(exits(137, "Error"), disrupted("PreemptionByScheduler", "")), phase: runtime.PhaseExited, code: 137, says: "preempted by a higher-priority workload"},
		"node gone":      {pod: with(fails("", ""), disrupted("DeletionByPodGC", "PodGC: node no longer exists")), phase: runtime.PhaseExited, code: -1, says: "no longer part of the cluster"},
		"status unknown": {pod: exits(137, "ContainerStatusUnknown"), phase: runtime.PhaseExited, code: 137, says: "no longer running"},
	} {
		t.Run(name, func(t *testing.T) {
			s := describe(seen(test.pod), test.events)
			if s.Phase != test.phase || s.Progress != test.percent || s.ExitCode != test.code || !strings.Contains(s.Message.String(), test.says) {
				t.Errorf("%s at %d percent, code %d: %q", s.Phase, s.Progress, s.ExitCode, s.Message)
			}
			if known := test.code >= 0 && name != "status unknown"; known != s.EndedAt.Equal(ended.Add(time.Second)) || !known && !s.EndedAt.IsZero() {
				t.Errorf("it has ended at %s", s.EndedAt)
			}
			if want := map[bool]string{true: "10.88.0.7:8888"}[test.phase == runtime.PhaseRunning]; s.Endpoint.Address != want {
				t.Errorf("it answers at %q", s.Endpoint.Address)
			}
		})
	}
}

func event(reason, message string, minute int) corev1.Event {
	kind := corev1.EventTypeNormal
	if strings.HasPrefix(reason, "Failed") {
		kind = corev1.EventTypeWarning
	}
	return corev1.Event{Reason: reason, Message: message, Type: kind, LastTimestamp: metav1.NewTime(time.Unix(int64(minute)*60, 0))}
}

func TestLimitsAreThoseOfThePod(t *testing.T) {
	says := runtime.GPULimits([]runtime.GPU{{Simulated: true}}, config(t, nil).gpuLimit)
	b, err := json.Marshal(says)
	if err != nil {
		t.Fatal(err)
	}
	limits := limitsOf(seen(func(p *corev1.Pod) { p.Annotations = map[string]string{annotationLimits: string(b)} }))
	if len(limits) != 5 || limits[2].Resource != "network" || limits[2].Enforced || limits[3].Resource != "pids" || limits[3].Enforced ||
		limits[0].How.String() != "1.5 CPU, enforced by the node (cgroup)" || limits[1].How.String() != "2 GiB, enforced by the node (cgroup)" ||
		!limits[1].Enforced || limits[4].Resource != "gpu" || limits[4].Enforced {
		t.Errorf("%+v", limits)
	}
	if limits := limitsOf(seen(func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = nil })); limits[0].Enforced || limits[1].Enforced {
		t.Errorf("without limits: %+v", limits)
	}
}

func TestPlainIsOneShortLine(t *testing.T) {
	if got := oneLine("a\n\tb  c\xff"); got != "a b c" {
		t.Errorf("%q", got)
	}
	if got := oneLine(strings.Repeat("é", 400)); len(got) > maxMessage+len("…") || !strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-6:])
	}
}

func TestLastLinesShowNoSecret(t *testing.T) {
	secrets := secretsOf(map[string]string{"JUPYTER_TOKEN": "abcdefgh", "WEIR_TOKEN": "abcdefgh-longer", "HOME": "/home/jovyan", "X_TOKEN": "short"})
	got := runtime.LogTail("at http://x/?token=abcdefgh and abcdefgh-longer in /home/jovyan\n", secrets...)
	if got != "at http://x/?token=[token] and [token] in /home/jovyan\n" {
		t.Errorf("%q", got)
	}
	long := strings.Repeat("0123456789\n", 1000)
	if got := runtime.LogTail(long); len(got) > runtime.MaxLogTail || !strings.HasPrefix(got, "0123456789\n") {
		t.Errorf("%d bytes: %.20q", len(got), got)
	}
}

func TestAdvertisement(t *testing.T) {
	node := func(by string, cores string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a", Annotations: map[string]string{}}}
		if by != "" {
			n.Annotations[annotationAdvertiser] = by
		}
		if cores != "" {
			list := corev1.ResourceList{resourceCores: resource.MustParse(cores)}
			n.Status.Capacity, n.Status.Allocatable = list, list
		}
		return n
	}
	for name, test := range map[string]struct {
		node  *corev1.Node
		named bool
		want  string
	}{
		"new":       {node("", ""), true, `"weir.dev/gpu-cores":"800"`},
		"as it is":  {node("weir", "800"), true, ""},
		"changed":   {node("weir", "400"), true, `"weir.dev/gpu-cores":"800"`},
		"forgotten": {node("weir", ""), true, `"weir.dev/gpu-cores":"800"`},
		"left":      {node("weir", "800"), false, `"weir.dev/gpu-cores":null`},
		"another's": {node("other", "800"), true, ""},
		"not ours":  {node("other", "800"), false, ""},
		"no GPUs":   {node("", ""), false, ""},
		"adoptable": {node("", "800"), true, `"weir.dev/advertised-by":"weir"`},
	} {
		got := string(advertisement(test.node, "weir", 800, test.named))
		if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// The pods of each generation have names of their own, and those of another installation with
// the same names are told apart by their label.
func TestPodsOfOwners(t *testing.T) {
	c := config(t, nil)
	owned := func(installation string, generation int64) Config {
		c.Owner = runtime.Owner{Installation: installation, Generation: generation}
		return c
	}
	first, second, third, stranger := owned("a1", 1), owned("a1", 2), owned("a1", 3), owned("b2", 1)
	pod, restored, before := podOf(t, first, spec()), podOf(t, second, spec()), podOf(t, c, spec())
	if delete(before.Labels, labelOwner); before.Name != pod.Name || pod.Name == restored.Name {
		t.Fatalf("the pods are %s, %s and %s", pod.Name, restored.Name, before.Name)
	}
	for name, test := range map[string]struct {
		of  Config
		pod corev1.Pod
		own bool
	}{
		"of the first, for the first":        {first, pod, true},
		"of the first, for the second":       {second, pod, false},
		"of the second, for the first":       {first, restored, false},
		"of the second, for the second":      {second, restored, true},
		"of the second, for the third":       {third, restored, false},
		"of another installation":            {stranger, pod, false},
		"from before there were owners":      {first, before, true},
		"from before, for the second":        {second, before, false},
		"from before, for whoever comes new": {stranger, before, true},
	} {
		if _, own := test.of.refOf(&test.pod); own != test.own {
			t.Errorf("a pod %s: own is %v", name, own)
		}
	}
	restored.Labels = nil
	if id, own := second.refOf(&restored); !own || !strings.Contains(string(second.missingLabels(&restored, id, nil)), `"weir.dev/owner":"a1.2"`) {
		t.Errorf("the label of its owner is not made again: %s", second.missingLabels(&restored, id, nil))
	}
	run := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: second.runName(kindRun, ref{Workspace: 7})}}
	if id, own := second.runOf(kindRun, &run); !own || id.Workspace != 7 {
		t.Errorf("its run is %+v, %v", id, own)
	}
	if _, own := first.runOf(kindRun, &run); own {
		t.Error("its run is the first's, too")
	}
	if !second.has(second.ref(spec())) || second.has(first.ref(spec())) {
		t.Error("a state of the first generation is the second's")
	}
}

func TestStates(t *testing.T) {
	c := config(t, nil)
	id := c.ref(spec())
	again, err := parseState(id.state())
	if err != nil || again != id {
		t.Errorf("%+v, %v", again, err)
	}
	pod := podOf(t, c, spec())
	if found, ok := c.refOf(&pod); !ok || found != id {
		t.Errorf("by its name it is %+v", found)
	}
	if patch := c.missingLabels(&pod, id, nil); patch != nil {
		t.Errorf("its labels are made again: %s", patch)
	}
	had := pod.Labels
	pod.Labels = nil
	for _, known := range []map[string]string{nil, had} {
		patch := string(c.missingLabels(&pod, id, known))
		for _, label := range []string{labelName, labelManagedBy, labelInstance, labelProject, labelWorkspace, labelGeneration} {
			if !strings.Contains(patch, fmt.Sprintf("%q:%q", label, had[label])) {
				t.Errorf("the label %s is not made again: %s", label, patch)
			}
		}
	}
	for _, name := range []string{"", "ws-", "ws-5", "ws-5-", "ws-5-x", "ws-0-1", "ws-05-2", "ws-5-2-3", "5-2"} {
		if found, ok := c.refOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: had}}); ok {
			t.Errorf("%q is taken for %+v", name, found)
		}
	}
	for _, state := range []string{"", "no state", "{}", `{"namespace":"x"}`} {
		if _, err := parseState(runtime.State(state)); err == nil {
			t.Errorf("%q is a state", state)
		}
	}
}

func TestOnlyCores(t *testing.T) {
	cores := corev1.ResourceList{resourceCores: resource.MustParse("800"), "cpu": resource.MustParse("4")}
	got, err := stripNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a", Annotations: map[string]string{annotationAdvertiser: "weir", "x": "y"}},
		Status: corev1.NodeStatus{Capacity: cores, Allocatable: cores, Images: make([]corev1.ContainerImage, 50)}})
	slim := got.(*corev1.Node)
	if err != nil || len(slim.Status.Images)+len(slim.Status.Capacity) != 1 || len(slim.Annotations) != 1 || advertisement(slim, "weir", 800, true) != nil {
		t.Errorf("%+v, %v", slim, err)
	}
}

// The stage of a start, which decides how long it may take, comes from what
// the cluster reports and not from how it is worded.
func TestStages(t *testing.T) {
	for name, test := range map[string]struct {
		pod    func(*corev1.Pod)
		events []corev1.Event
		want   runtime.Stage
	}{
		"no node":        {pod: unscheduled, want: runtime.StageScheduling},
		"pulling":        {pod: inUse("ContainerCreating", ""), events: []corev1.Event{event("FailedMount", "", 1), event("Pulling", "", 2)}, want: runtime.StagePulling},
		"mount fails":    {pod: inUse("ContainerCreating", ""), events: []corev1.Event{event("Scheduled", "", 1), event("FailedMount", "", 2)}, want: runtime.StageMountFailed},
		"no such image":  {pod: inUse("ImagePullBackOff", ""), want: runtime.StageImageFailed},
		"does not start": {pod: runs(false), want: runtime.StageStarting},
	} {
		t.Run(name, func(t *testing.T) {
			pod := seen(test.pod)
			if got := describe(pod, test.events).Stage; got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
