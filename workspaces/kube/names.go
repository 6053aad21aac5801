package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	meta "k8s.io/client-go/applyconfigurations/meta/v1"

	"weir/workspaces/runtime"
)

// Labels and annotations of the objects of this package.
const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelManagedBy = "app.kubernetes.io/managed-by"
	labelPartOf    = "app.kubernetes.io/part-of"

	labelProject    = "weir.dev/project"
	labelMember     = "weir.dev/member"
	labelWorkspace  = "weir.dev/workspace"
	labelGeneration = "weir.dev/generation"
	labelRun        = "weir.dev/run"
	labelPart       = "weir.dev/deployment-part"
	labelOwner      = "weir.dev/owner" // of pods; see runtime.Owner

	labelOutgoing = "weir.dev/outgoing" // of pods whose connections are restricted

	annotationOutgoing = "weir.dev/outgoing" // of such pods: what they may reach
	restricted         = "restricted"        // the value of the label

	annotationLimits = "weir.dev/limits"

	manager      = "weir"           // also the field manager
	nameNotebook = "weir-workspace" // app.kubernetes.io/name of pods
	nameRun      = "weir-run"       // the same of runs
	namePart     = "weir-deployment-part"
	nameProject  = "weir-project" // of the objects of a project
)

// Names of objects that exist once in each namespace.
const (
	claimMPS      = "mps"
	configJupyter = "jupyter"
	containerName = "notebook"
	servicePortal = "portal"
)

func (c Config) namespace(project int64) string {
	return c.Prefix + strconv.FormatInt(project, 10)
}

// claimOf names the claim of a directory at the current backend.
func (c Config) claimOf(d Directory) string { return d.Name + "-" + c.Storage.hash() }

// podKind is what pods are for.
type podKind struct {
	prefix string // of their names
	name   string // app.kubernetes.io/name
	label  string // has their id

	again bool // they can be started again, when the pod of an earlier start is not gone yet
}

var (
	kindWorkspace = podKind{prefix: "ws", name: nameNotebook, label: labelWorkspace, again: true}
	kindRun       = podKind{prefix: "run", name: nameRun, label: labelRun}
	kindPart      = podKind{prefix: "part", name: namePart, label: labelPart, again: true}

	podKinds = []podKind{kindWorkspace, kindRun, kindPart}
)

// ref identifies one start of one workspace, one run, or one part. It is the State that callers persist.
type ref struct {
	Namespace  string `json:"namespace"`
	Pod        string `json:"pod"`
	Workspace  int64  `json:"workspace"`
	Generation int64  `json:"generation"`
}

func (c Config) ref(spec runtime.Spec) ref { return c.runRef(kindWorkspace, spec) }

func (r ref) state() runtime.State {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // two strings and two numbers
	}
	return b
}

var errNoState = errors.New("not a state of the Kubernetes runtime")

func parseState(state runtime.State) (ref, error) {
	var r ref
	if err := json.Unmarshal(state, &r); err != nil {
		return r, fmt.Errorf("%w: %w", errNoState, err)
	}
	if r.Namespace == "" || r.Pod == "" || r.Workspace <= 0 {
		return r, errNoState
	}
	return r, nil
}

// refOf returns the start of a pod from its name, which is immutable; false if it is
// not the pod of a workspace of this owner.
func (c Config) refOf(pod *corev1.Pod) (ref, bool) { return c.runOf(kindWorkspace, pod) }

// runRef returns the reference of what is of a kind, whose id is that of the spec's workspace.
func (c Config) runRef(k podKind, spec runtime.Spec) ref {
	r := ref{Namespace: c.namespace(spec.Project), Workspace: spec.Workspace, Generation: 1}
	if k.again {
		r.Generation = spec.Generation
	}
	r.Pod = c.runName(k, r)
	return r
}

// runOf returns the reference of a pod from its name; false if it is not of this kind and owner.
func (c Config) runOf(k podKind, pod *corev1.Pod) (ref, bool) {
	r, ok := c.runNamed(k, pod.Name)
	r.Namespace = pod.Namespace
	return r, ok && c.owns(pod)
}

// runNamed returns the reference by the name of a pod; false if it is none of this kind and owner.
func (c Config) runNamed(k podKind, name string) (ref, bool) {
	id, generation, again := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(name, k.prefix+"-"), c.nameEnd()), "-")
	r := ref{Pod: name, Generation: 1}
	var err, err2 error
	r.Workspace, err = strconv.ParseInt(id, 10, 64)
	if again {
		r.Generation, err2 = strconv.ParseInt(generation, 10, 64)
	}
	return r, err == nil && err2 == nil && r.Workspace > 0 && name == c.runName(k, r)
}

// runName is the name of the pod of a kind with an id and a generation.
func (c Config) runName(k podKind, r ref) string {
	if k.again {
		return fmt.Sprintf("%s-%d-%d%s", k.prefix, r.Workspace, r.Generation, c.nameEnd())
	}
	return fmt.Sprintf("%s-%d%s", k.prefix, r.Workspace, c.nameEnd())
}

// idOf returns the workspace, run or part of a pod; false if it is none of this owner.
func (c Config) idOf(pod *corev1.Pod) (id ref, ok bool) {
	for _, k := range podKinds {
		if id, ok = c.runOf(k, pod); ok {
			break
		}
	}
	return id, ok
}

// nameEnd makes the names of the pods of a restored installation differ from those of the
// generations before it.
func (c Config) nameEnd() string {
	if c.Owner.Generation <= 1 {
		return ""
	}
	return fmt.Sprintf("-r%d", c.Owner.Generation)
}

// owns reports whether a pod of a right name is of this owner. Others may have removed its
// label.
func (c Config) owns(pod *corev1.Pod) bool {
	mark := pod.Labels[labelOwner]
	return mark == "" || c.Owner == (runtime.Owner{}) || mark == c.Owner.String()
}

// has reports whether a state is of this owner: one of a database before it was restored is not.
func (c Config) has(id ref) bool {
	return slices.ContainsFunc(podKinds, func(k podKind) bool { return id.Pod == c.runName(k, id) })
}

func ownerOf(r ref, pod types.UID) *meta.OwnerReferenceApplyConfiguration {
	return meta.OwnerReference().WithAPIVersion("v1").WithKind("Pod").WithName(r.Pod).WithUID(pod).
		WithBlockOwnerDeletion(false).WithController(true)
}
