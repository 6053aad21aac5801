//go:build cluster

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"weir/tools/cluster"
)

// lastLines is how much is shown of a log, in lines.
const lastLines = 40

// stateOf says of each pod and volume of a cluster what it waits for, and what happened lately.
func stateOf(k *cluster.Cluster, config *rest.Config) string {
	var all strings.Builder
	if client, err := kubernetes.NewForConfig(config); err != nil {
		fmt.Fprintln(&all, err)
	} else if err := describe(&all, client.CoreV1()); err != nil {
		fmt.Fprintln(&all, err)
	}
	for _, name := range []string{cluster.Scheduler, cluster.Controllers, cluster.Kubelet} {
		b, err := os.ReadFile(filepath.Join(k.Dir(), "logs", name+".log"))
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		fmt.Fprintf(&all, "%s: %v\n%s\n", name, err, strings.Join(lines[max(0, len(lines)-lastLines):], "\n"))
	}
	return all.String()
}

// describe writes the state of the pods, claims and volumes, and the events.
func describe(to *strings.Builder, cluster corev1client.CoreV1Interface) error {
	ctx, all := context.Background(), metav1.ListOptions{}
	pods, err1 := cluster.Pods("").List(ctx, all)
	claims, err2 := cluster.PersistentVolumeClaims("").List(ctx, all)
	volumes, err3 := cluster.PersistentVolumes().List(ctx, all)
	events, err4 := cluster.Events("").List(ctx, all)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	for _, p := range pods.Items {
		fmt.Fprintf(to, "pod %s/%s on %q: %s %s %+v\n", p.Namespace, p.Name, p.Spec.NodeName, p.Status.Phase, p.Status.Message, p.Status.Conditions)
		for _, c := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
			fmt.Fprintf(to, "  %s: ready %t, %d restarts, %+v\n", c.Name, c.Ready, c.RestartCount, c.State)
		}
	}
	for _, c := range claims.Items {
		fmt.Fprintf(to, "claim %s/%s of volume %q: %s %v\n", c.Namespace, c.Name, c.Spec.VolumeName, c.Status.Phase, c.Annotations)
	}
	for _, v := range volumes.Items {
		fmt.Fprintf(to, "volume %s for %+v: %s %s\n", v.Name, v.Spec.ClaimRef, v.Status.Phase, v.Status.Message)
	}
	for _, e := range events.Items {
		fmt.Fprintf(to, "%s %s/%s: %s %s\n", e.LastTimestamp.UTC().Format(time.TimeOnly), e.Namespace, e.InvolvedObject.Name, e.Reason, e.Message)
	}
	return nil
}
