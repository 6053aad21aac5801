package kube

import (
	"context"
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
	id, err := parseState(state)
	if err != nil {
		return nil, err
	}
	pod, err := r.cluster.find(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case pod == nil || podEnded(pod) || pod.Status.PodIP == "":
		return nil, fmt.Errorf("the pod %s is not running", id.Pod)
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	return dialer.DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(notebookPort)))
}
