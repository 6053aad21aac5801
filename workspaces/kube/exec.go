package kube

import (
	"context"
	"errors"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
)

const execTimeout = 4 * time.Second // of a command in a pod

// exec runs a command in the container of a pod, and reports whether its exit code is 0.
func (r *Runtime) exec(ctx context.Context, pod *corev1.Pod, command ...string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, execTimeout)
	defer cancel()
	request := r.client.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: containerName, Command: command, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(r.rest, "POST", request.URL())
	if err != nil {
		return false, err
	}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stderr: io.Discard})
	if _, exited := errors.AsType[exec.CodeExitError](err); exited {
		return false, nil
	}
	return err == nil, err
}
