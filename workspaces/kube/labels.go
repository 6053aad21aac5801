package kube

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"weir/workspaces/runtime"
)

// labels returns the labels of all objects of this installation.
func (c Config) labels(name string, project int64) map[string]string {
	return map[string]string{labelName: name, labelInstance: c.Instance, labelManagedBy: manager, labelPartOf: "weir",
		labelProject: strconv.FormatInt(project, 10)}
}

func (c Config) workspaceLabels(spec runtime.Spec) map[string]string {
	all := c.runLabels(kindWorkspace, spec)
	all[labelGeneration] = strconv.FormatInt(spec.Generation, 10)
	return all
}

// owned returns the labels of a pod, from those of what belongs to it.
func (c Config) owned(labels map[string]string) map[string]string {
	if c.Owner != (runtime.Owner{}) {
		labels[labelOwner] = c.Owner.String()
	}
	return labels
}

// selector selects the objects of this installation.
func (c Config) selector() string {
	return labelManagedBy + "=" + manager + "," + labelInstance + "=" + c.Instance
}

func (c Config) runLabels(k podKind, spec runtime.Spec) map[string]string {
	all := c.labels(k.name, spec.Project)
	all[labelMember], all[k.label] = strconv.FormatInt(spec.Member, 10), strconv.FormatInt(spec.Workspace, 10)
	return all
}

// knownLabels returns the labels of a pod but for its member, by its reference.
func (c Config) knownLabels(id ref) map[string]string {
	project, _ := strconv.ParseInt(strings.TrimPrefix(id.Namespace, c.Prefix), 10, 64) // the namespace is the project's
	spec := runtime.Spec{Project: project, Workspace: id.Workspace, Generation: id.Generation}
	all := c.workspaceLabels(spec)
	switch id.Pod {
	case c.runName(kindRun, id):
		all = c.runLabels(kindRun, spec)
	case c.runName(kindPart, id):
		all = c.runLabels(kindPart, spec)
	}
	delete(all, labelMember)
	return all
}

// missingLabels returns the patch that restores the labels of a pod; nil if it has
// them. had are its former labels; nil: unknown.
func (c Config) missingLabels(pod *corev1.Pod, id ref, had map[string]string) []byte {
	if pod.Labels[labelManagedBy] == manager && pod.Labels[labelInstance] == c.Instance &&
		(pod.Labels[labelOutgoing] != "" || !isRestricted(pod)) {
		return nil
	}
	if had == nil {
		had = c.owned(c.knownLabels(id))
	}
	if isRestricted(pod) {
		had = maps.Clone(had)
		had[labelOutgoing] = restricted
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": had}})
	if err != nil {
		panic(err) // strings and nothing else
	}
	return patch
}
