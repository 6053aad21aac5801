package kube

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// New returns a Runtime after the initial lists of the informers. The error
// contains all problems of the configuration, or the reason why the cluster cannot
// be used. What New starts in the background ends with Close, not with ctx.
func New(ctx context.Context, c Config) (*Runtime, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	at, err := c.restConfig()
	if err != nil {
		return nil, err
	}
	requests := newRequestMetrics()
	at.Wrap(requests.through)
	client, err := kubernetes.NewForConfig(at)
	if err != nil {
		return nil, err
	}
	unreachable := &atomic.Bool{}
	retrying := rest.CopyConfig(at)
	retrying.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return retryTransport{next, retryPeriod, c.Logger, unreachable}
	})
	watchClient, err := kubernetes.NewForConfig(retrying)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if _, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: c.selector(), Limit: 1}); err != nil {
		return nil, fmt.Errorf("the cluster at %s cannot be used: %w", at.Host, err)
	}
	if c.Storage, err = c.Storage.resolve(ctx, client); err != nil {
		return nil, fmt.Errorf("the storage of the shared directories: %w", err)
	}
	r := &Runtime{config: c, rest: at, client: client, watchClient: watchClient, unreachable: unreachable, requests: requests, log: c.Logger,
		now:      c.Clock,
		projects: projects{drifted: make(chan int64, 64)},
		stopping: map[types.UID]time.Time{}, deleted: map[ref]lastStatus{}, labels: map[ref]map[string]string{}}
	if err := r.watch(ctx); err != nil {
		return nil, err
	}
	return r, nil
}
