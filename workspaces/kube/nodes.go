package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// annotationAdvertiser is the installation that advertises a node's GPU cores.
const annotationAdvertiser = "weir.dev/advertised-by"

// Advertise sets the capacity in GPU cores (hundredths of a GPU) of each node, which
// the scheduler and the kubelets enforce, and removes it from nodes of this
// installation that are not in cores. Call it periodically, because a kubelet may
// reset it; only differences are written. It returns the names without a node.
func (r *Runtime) Advertise(ctx context.Context, cores map[string]int64) (unknown []string, err error) {
	nodes, err := r.nodeLister.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	left := maps.Clone(cores)
	var failed []error
	for _, node := range nodes {
		wanted, named := cores[node.Name]
		delete(left, node.Name)
		patch := advertisement(node, r.config.Instance, wanted, named)
		if patch == nil {
			continue
		}
		_, err := r.client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: manager}, "status")
		if err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, fmt.Errorf("node %s: %w", node.Name, err))
		}
	}
	return slices.Sorted(maps.Keys(left)), errors.Join(failed...)
}

// AcceptsPods reports whether the cluster has a node of this name that is not cordoned.
func (r *Runtime) AcceptsPods(name string) bool {
	node, err := r.nodeLister.Get(name)
	return err == nil && !node.Spec.Unschedulable
}

// stripNode removes the fields of a node that [Runtime.Advertise] and [Runtime.AcceptsPods] do not need.
func stripNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	few := func(all corev1.ResourceList) corev1.ResourceList {
		if quantity, ok := all[resourceCores]; ok {
			return corev1.ResourceList{resourceCores: quantity}
		}
		return nil
	}
	slim := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion}}
	if by, ok := node.Annotations[annotationAdvertiser]; ok {
		slim.Annotations = map[string]string{annotationAdvertiser: by}
	}
	slim.Spec.Unschedulable = node.Spec.Unschedulable
	slim.Status.Capacity, slim.Status.Allocatable = few(node.Status.Capacity), few(node.Status.Allocatable)
	return slim, nil
}

// advertisement returns the patch of a node's status with its cores; nil if there is
// nothing to change.
func advertisement(node *corev1.Node, instance string, cores int64, named bool) []byte {
	by, ours := node.Annotations[annotationAdvertiser], node.Annotations[annotationAdvertiser] == instance
	capacity, has := node.Status.Capacity[resourceCores]
	allocatable := node.Status.Allocatable[resourceCores]
	var value, advertiser any
	switch {
	case named && by != "" && !ours && has:
		return nil // another pool's node
	case named && (!has || !ours || capacity.Value() != cores || allocatable.Value() != cores):
		value, advertiser = fmt.Sprint(cores), instance
	case !named && ours:
	default:
		return nil
	}
	resource := map[string]any{resourceCores: value}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{annotationAdvertiser: advertiser}},
		"status":   map[string]any{"capacity": resource, "allocatable": resource},
	})
	if err != nil {
		panic(err) // strings and nothing else
	}
	return patch
}
