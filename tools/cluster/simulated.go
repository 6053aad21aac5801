package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
)

// SimulatedKey is the annotation of KWOK's nodes, and the taint that keeps
// other pods away; both have the value “fake”.
const SimulatedKey = "kwok.x-k8s.io/node"

// Simulate starts KWOK, unless it runs, and adds nodes named simulated-0 and
// so on, each with 32 CPUs, 256 GiB, 8 GPUs and 110 pods. Pods on them are
// reported as running. It returns when the last node is ready.
func (c *Cluster) Simulate(ctx context.Context, nodes int) error {
	if c.dir == "" {
		return errors.New("nodes can be simulated only in a cluster that was started here")
	}
	bin, err := kwok.programs(ctx, c.log)
	if err != nil {
		return err
	}
	p, err := c.spawn("kwok", filepath.Join(bin, "kwok"), "--kubeconfig="+c.path("keys", "kwok.kubeconfig"),
		"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector="+SimulatedKey+"=fake",
		"--server-address=127.0.0.1:0") // any port: nothing uses it
	if err != nil {
		return err
	}
	for i := range nodes {
		if err := c.api.Do(ctx, http.MethodPost, "/api/v1/nodes", simulatedNode(simulatedName(i)), nil); err != nil {
			return err
		}
	}
	return await(ctx, p, func(ctx context.Context) error { return c.nodeReady(ctx, simulatedName(nodes-1)) })
}

func simulatedName(i int) string { return fmt.Sprintf("simulated-%d", i) }

func simulatedNode(name string) map[string]any {
	resources := map[string]string{"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}
	return map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{
			"name":        name,
			"annotations": map[string]string{SimulatedKey: "fake"},
			"labels":      map[string]string{"type": "kwok", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
		},
		"spec":   map[string]any{"taints": []map[string]string{{"key": SimulatedKey, "value": "fake", "effect": "NoSchedule"}}},
		"status": map[string]any{"capacity": resources, "allocatable": resources},
	}
}
