package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"weir/workspaces/runtime"
)

// dialTimeout bounds a connection to a pod whose node may be gone.
const dialTimeout = 5 * time.Second

// Address is where the command of a part has to listen; see [runtime.Parts].
func (r *Runs) Address() string { return fmt.Sprintf(":%d", notebookPort) }

// Dial connects to the command of a part; see [runtime.Parts].
func (r *Runs) Dial(ctx context.Context, state runtime.State) (net.Conn, error) {
	address, err := r.Reach(ctx, state)
	if err != nil {
		return nil, err
	}
	if address == "" {
		return nil, errors.New("its pod is not running")
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	return dialer.DialContext(ctx, "tcp", address)
}

// Reach returns the address of a pod; see [runtime.Reachable].
func (r *Runs) Reach(ctx context.Context, state runtime.State) (string, error) {
	id, err := parseState(state)
	if err != nil {
		return "", err
	}
	pod, err := r.cluster.find(ctx, id)
	if err != nil || pod == nil || podEnded(pod) || pod.Status.PodIP == "" {
		return "", err
	}
	return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(notebookPort)), nil
}
