package workspaces

import (
	"sync"
	"time"

	"weir/models"
)

// countsPruned is the time between two removals of old counts.
const countsPruned = time.Hour

// Steps in which counts are stored, in seconds.
const (
	stepMinute  = 60
	stepQuarter = 15 * 60
	stepHour    = 60 * 60
	stepAll     = 0
)

// stepsKept is how long the counts of each step are kept; 0: always.
var stepsKept = map[int64]time.Duration{stepMinute: 2 * time.Hour, stepQuarter: 25 * time.Hour, stepHour: 91 * 24 * time.Hour, stepAll: 0}

// requestCounts counts requests to deployments, in minutes, until that is saved.
type requestCounts struct {
	mu     sync.Mutex
	counts map[requestCount]amount
	pruned time.Time
}

// requestCount is what is counted.
type requestCount struct {
	deployment int64
	minute     time.Time
	measure    models.DeploymentMeasure
	bucket     int64
}

type amount struct{ count, millis int64 }

func (c *requestCounts) add(of requestCount, n amount) {
	if n.count == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[requestCount]amount{}
	}
	sum := c.counts[of]
	c.counts[of] = amount{sum.count + n.count, sum.millis + n.millis}
}

// take returns the counts, and begins anew.
func (c *requestCounts) take() map[requestCount]amount {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.counts
	c.counts = nil
	return taken
}

// pruneDue reports whether old counts are to be removed now.
func (c *requestCounts) pruneDue(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Sub(c.pruned) >= countsPruned
}

func (c *requestCounts) setPruned(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pruned = at
}

// storedCounts are counts in each of the steps that are stored.
func storedCounts(taken map[requestCount]amount) (list []models.DeploymentCount) {
	sums := map[models.DeploymentCount]amount{}
	for of, n := range taken {
		for step := range stepsKept {
			at := time.Unix(0, 0).UTC()
			if step != stepAll {
				at = of.minute.Truncate(time.Duration(step) * time.Second)
			}
			key := models.DeploymentCount{DeploymentID: of.deployment, Step: step, At: at, Measure: of.measure, Bucket: of.bucket}
			sums[key] = amount{sums[key].count + n.count, sums[key].millis + n.millis}
		}
	}
	for key, n := range sums {
		key.Count, key.Millis = n.count, n.millis
		list = append(list, key)
	}
	return list
}
