package cluster

import (
	"context"
	"fmt"
	"time"
)

// readyTimeout is how long a program may take to become ready. A loaded
// machine needs a large part of it.
const readyTimeout = 5 * time.Minute

// await polls until ready returns nil, a program has ended, or the time is
// over; then it returns the last error, with the program's log.
func await(ctx context.Context, p *running, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.done:
			return p.failure(err)
		case <-ctx.Done():
			return p.failure(fmt.Errorf("%w: %w", context.Cause(ctx), err))
		}
	}
}
