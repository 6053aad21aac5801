package proxy

import (
	"maps"
	"sync"
	"time"
)

// activity reports the use of workspaces, of each at most once a second.
type activity struct {
	report func(workspace int64)
	mu     sync.Mutex
	last   map[int64]time.Time
}

func newActivity(report func(int64)) *activity {
	return &activity{report: report, last: map[int64]time.Time{}}
}

func (a *activity) touch(workspace int64, now time.Time) {
	if a.due(workspace, now) {
		a.report(workspace)
	}
}

func (a *activity) due(workspace int64, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last, seen := a.last[workspace]; seen && now.Sub(last) < time.Second {
		return false
	}
	a.last[workspace] = now
	return true
}

// prune deletes the workspaces without recent use.
func (a *activity) prune(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.last, func(_ int64, last time.Time) bool { return now.Sub(last) >= time.Second })
}
