package kube

import (
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir/models"
	"weir/workspaces/runtime"
)

// describe returns the status of a pod from its object and its events, if any.
func describe(pod *corev1.Pod, events []corev1.Event) runtime.Status {
	status := runtime.Status{ExitCode: -1, Limits: limitsOf(pod)}
	notebook := containerOf(pod)
	switch {
	case podEnded(pod):
		status.Phase = runtime.PhaseExited
		if t := notebook.State.Terminated; t != nil {
			status.ExitCode, status.EndedAt = int(t.ExitCode), finishedAt(*t)
		}
		status.Message = endMessage(pod, notebook.State.Terminated)
	case containerReady(notebook) && pod.Status.PodIP != "":
		status.Phase, status.Progress = runtime.PhaseRunning, 100
		status.Message = runningMessage(pod, notebook.Ready)
		status.Endpoint = models.Endpoint{Network: "tcp", Address: net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(notebookPort))}
	default:
		status.Phase = runtime.PhaseStarting
		status.Stage, status.Progress, status.Message = startOf(pod, notebook, events)
	}
	return status
}

// containerOf returns the status of the notebook's container; the cluster may have
// added others.
func containerOf(pod *corev1.Pod) corev1.ContainerStatus {
	all := pod.Status.ContainerStatuses
	if i := slices.IndexFunc(all, func(s corev1.ContainerStatus) bool { return s.Name == containerName }); i >= 0 {
		return all[i]
	}
	return corev1.ContainerStatus{}
}

// podEnded reports whether the notebook has ended, although its pod exists.
func podEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded ||
		containerOf(pod).State.Terminated != nil
}

// containerReady reports whether the notebook has responded. A kubelet sets “started” and
// then “ready”; simulated ones set only the latter.
func containerReady(s corev1.ContainerStatus) bool {
	return s.State.Running != nil && (s.Ready || s.Started != nil && *s.Started)
}

// waitsForContainer reports whether a pod is on a node and its container does not run
// yet.
func waitsForContainer(pod *corev1.Pod) bool {
	s := containerOf(pod).State
	return !podEnded(pod) && s.Running == nil && pod.Spec.NodeName != ""
}

// notebookOf returns the notebook's container as it was created.
func notebookOf(pod *corev1.Pod) corev1.Container {
	for _, c := range pod.Spec.Containers {
		if c.Name == containerName {
			return c
		}
	}
	return corev1.Container{}
}

// startOf returns what a start waits for, and its progress in percent, which never
// decreases.
func startOf(pod *corev1.Pod, s corev1.ContainerStatus, events []corev1.Event) (stage runtime.Stage, percent int, message models.Text) {
	switch {
	case pod.DeletionTimestamp != nil:
		return runtime.StageLaunching, 0, models.Say("The pod is stopping")
	case s.State.Running != nil:
		return runtime.StageStarting, 70, models.Say("Jupyter is starting")
	case s.State.Waiting != nil && s.State.Waiting.Reason != "ContainerCreating":
		stage, message = waitingFor(notebookOf(pod).Image, *s.State.Waiting)
		return stage, 30, message
	case pod.Spec.NodeName != "":
		stage, message = preparingFor(notebookOf(pod).Image, events)
		return stage, 30, message
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message != "" {
			return runtime.StageScheduling, 10, models.Say("No node in the cluster can run the pod now: %s", oneLine(c.Message))
		}
	}
	return runtime.StageScheduling, 10, models.Say("The cluster is choosing a node")
}

// waitingFor describes why the kubelet has not started a container.
func waitingFor(image string, w corev1.ContainerStateWaiting) (runtime.Stage, models.Text) {
	switch w.Reason {
	case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError", "SignatureValidationFailed":
		return runtime.StageImageFailed, models.Say("The image %s cannot be pulled: %s", image, oneLine(w.Message))
	case "ErrImageNeverPull":
		return runtime.StageImageFailed, models.Say("The node does not have the image %s, and the configuration does not allow pulling it", image)
	case "InvalidImageName":
		return runtime.StageImageFailed, models.Say("“%s” is not a valid image name", image)
	case "CreateContainerConfigError":
		return runtime.StageSetupFailed, models.Say("The node cannot set up the pod: %s", oneLine(w.Message))
	case "PodInitializing", "":
		return runtime.StagePreparing, models.Say("The node is preparing the pod")
	}
	return runtime.StageSetupFailed, models.Say("The node cannot start the pod: %s", oneLine(w.Message+" ("+w.Reason+")"))
}

// preparingFor describes, from the newest event, what a pod without a container waits
// for. A failed mount is only in the events.
func preparingFor(image string, events []corev1.Event) (runtime.Stage, models.Text) {
	if len(events) > 0 {
		newest := slices.MaxFunc(events, func(a, b corev1.Event) int { return lastSeenAt(a).Compare(lastSeenAt(b)) })
		switch newest.Reason {
		case "Pulling":
			return runtime.StagePulling, models.Say("The node is pulling the image %s", image)
		case "FailedMount", "FailedAttachVolume":
			return runtime.StageMountFailed, models.Say("The node cannot mount the shared directories: %s", oneLine(newest.Message))
		case "FailedCreatePodSandBox":
			return runtime.StageSetupFailed, models.Say("The node cannot set up the pod: %s", oneLine(newest.Message))
		}
		if newest.Type == corev1.EventTypeWarning {
			return runtime.StageSetupFailed, models.Say("The node cannot start the pod: %s", oneLine(newest.Message))
		}
	}
	return runtime.StagePreparing, models.Say("The node is preparing the pod")
}

func lastSeenAt(e corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// runningMessage describes a running pod. ready is the kubelet's report; when a node
// stops responding, the cluster only changes the pod's condition.
func runningMessage(pod *corev1.Pod, ready bool) models.Text {
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue:
			return disruption(c)
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && ready && pod.DeletionTimestamp == nil:
			return models.Say("The node %s is not responding; the workspace may still be running there", pod.Spec.NodeName)
		}
	}
	return models.Say("Jupyter is running")
}

// endMessage describes why a notebook ended: because of its pod, or else of its
// process.
func endMessage(pod *corev1.Pod, t *corev1.ContainerStateTerminated) models.Text {
	if why := removal(pod, t); !why.Empty() {
		return why
	}
	if t == nil {
		return models.Say("Jupyter is no longer running")
	}
	return exitMessage(pod, *t)
}

// removal describes why the cluster has ended a pod, or is empty.
func removal(pod *corev1.Pod, t *corev1.ContainerStateTerminated) models.Text {
	switch reason := pod.Status.Reason; {
	case reason == "Evicted":
		return models.Say("The node evicted the pod: %s", oneLine(pod.Status.Message))
	case reason == "Preempting" || reason == "Preempted":
		return models.Say("The pod was preempted by a higher-priority workload in the cluster")
	case reason == "NodeLost":
		return models.Say("The node %s was lost", pod.Spec.NodeName)
	case reason == "Terminated" || reason == "NodeShutdown":
		return models.Say("The node %s was shut down", pod.Spec.NodeName)
	case t == nil && reason != "": // the kubelet's admission: OutOfcpu, NodeAffinity, UnexpectedAdmissionError
		return models.Say("The node %s rejected the pod: %s", pod.Spec.NodeName, oneLine(pod.Status.Message))
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return disruption(c)
		}
	}
	return models.Text{}
}

// endOfRun returns how a run has ended from its pod as it was last seen; nil if it was not.
func endOfRun(pod *corev1.Pod) runtime.RunStatus {
	status := runtime.RunStatus{Ended: true, ExitCode: -1}
	if pod == nil {
		status.Message = models.Say("The pod of the run was deleted.")
		return status
	}
	t := containerOf(pod).State.Terminated
	status.Limits, status.Message = limitsOf(pod), removal(pod, t)
	switch {
	case t != nil && t.Reason == "ContainerStatusUnknown", t == nil:
		if status.Message.Empty() {
			status.Message = models.Say("The pod of the run was deleted.")
		}
	case t.Reason == "StartError" || t.Reason == "ContainerCannotRun":
		status.Message = models.Say("The command could not be started: %s", oneLine(t.Message))
	default:
		status.EndedAt, status.ExitCode, status.OutOfMemory = finishedAt(*t), int(t.ExitCode), t.Reason == "OOMKilled"
	}
	return status
}

// finishedAt is when a container has ended, which is known to the second; zero if it is not known.
func finishedAt(t corev1.ContainerStateTerminated) time.Time {
	if t.FinishedAt.IsZero() || t.Reason == "ContainerStatusUnknown" {
		return time.Time{}
	}
	return t.FinishedAt.Add(time.Second)
}

func exitMessage(pod *corev1.Pod, t corev1.ContainerStateTerminated) models.Text {
	switch {
	case t.Reason == "OOMKilled":
		return models.Say("Jupyter was killed: memory limit of %s exceeded", models.FormatMiB(limitOf(pod, corev1.ResourceMemory)>>20))
	case t.Reason == "ContainerStatusUnknown":
		return models.Say("Jupyter is no longer running")
	case t.Reason == "StartError" || t.Reason == "ContainerCannotRun":
		return models.Say("Jupyter could not be started: %s", oneLine(t.Message))
	}
	return runtime.ExitMessage(int(t.ExitCode))
}

// disruption describes why the cluster removes a pod.
func disruption(c corev1.PodCondition) models.Text {
	switch c.Reason {
	case corev1.PodReasonPreemptionByScheduler:
		return models.Say("The pod was preempted by a higher-priority workload in the cluster")
	case "DeletionByTaintManager":
		return models.Say("The cluster removed the pod from its node: %s", oneLine(c.Message))
	case "EvictionByEvictionAPI":
		return models.Say("The node was drained by a cluster administrator")
	case "DeletionByPodGC":
		return models.Say("The node is no longer part of the cluster")
	}
	return models.Say("The node evicted the pod: %s", oneLine(c.Message))
}

// maxMessage is the maximum length of a message of the cluster, in bytes.
const maxMessage = 300

// oneLine returns a message in one line, truncated to maxMessage.
func oneLine(message string) string {
	line := strings.Join(strings.Fields(strings.ToValidUTF8(message, "")), " ")
	if len(line) > maxMessage {
		line = strings.ToValidUTF8(line[:maxMessage], "") + "…"
	}
	return line
}

// limitOf returns a limit of the notebook's container, of CPU in thousandths of a
// core and otherwise in bytes; 0 is none.
func limitOf(pod *corev1.Pod, name corev1.ResourceName) int64 {
	quantity := notebookOf(pod).Resources.Limits[name]
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// limitsOf returns the limits of a pod's resources, also those that the cluster has
// added.
func limitsOf(pod *corev1.Pod) []models.Limit {
	limit := func(resource string, value int64, how models.Text) models.Limit {
		if value == 0 {
			return models.Limit{Resource: resource, How: models.Say("no limit set")}
		}
		return models.Limit{Resource: resource, Enforced: true, How: how}
	}
	cpu, memory := limitOf(pod, corev1.ResourceCPU), limitOf(pod, corev1.ResourceMemory)
	all := []models.Limit{
		limit("cpu", cpu, models.Say("%s CPU, enforced by the node (cgroup)", models.Quantity("cpu_milli", cpu))),
		limit("memory", memory, models.Say("%s, enforced by the node (cgroup)", models.FormatMiB(memory>>20))),
		networkLimit(outgoingOf(pod)),
		{Resource: "pids", How: models.Say("only as the kubelet of the node is configured (podPidsLimit)")},
	}
	var gpu []models.Limit
	if json.Unmarshal([]byte(pod.Annotations[annotationLimits]), &gpu) == nil {
		all = append(all, gpu...)
	}
	return all
}
