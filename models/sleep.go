package models

import (
	"context"
	"time"
)

// Sleep waits, and reports whether ctx has not ended before.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
