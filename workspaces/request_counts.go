package workspaces

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/workspaces/deployments/serving"
)

const (
	// countsPeriod is how often a server saves what it has counted. What it has counted since is lost if it is killed.
	countsPeriod = 5 * time.Second
	// countsTimeout is how long saving may take.
	countsTimeout = 5 * time.Second
	// countsKept is how long counts are kept that cannot be saved.
	countsKept = time.Hour
	// countsPruned is the time between two removals of old counts.
	countsPruned = time.Hour
)

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

// outcome says as what a request counts whose error is err; "" for what the client has caused, which does not count.
func outcome(err error) models.DeploymentMeasure {
	_, ofPart := errors.AsType[*serving.PartError](err)
	switch kind := models.KindOf(err); {
	case err == nil:
		return models.MeasureDuration
	case errors.Is(err, context.Canceled):
		return ""
	case ofPart || errors.Is(err, serving.ErrNotNumber) || kind == models.KindUnavailable || kind == models.KindInternal:
		return models.MeasureFailed
	case kind == models.KindRateLimited:
		return models.MeasureRejected
	default:
		return ""
	}
}

// countRequest counts a request to a deployment that began at a time and has ended with an error, or without.
func (s *Service) countRequest(d models.Deployment, began time.Time, err error) {
	now := s.store.Now()
	of := requestCount{deployment: d.First(), minute: now.UTC().Truncate(time.Minute), measure: outcome(err)}
	switch of.measure {
	case "":
	case models.MeasureDuration:
		s.countDuration(of, now.Sub(began))
	default:
		s.counts.add(of, amount{count: 1})
	}
}

func (s *Service) countDuration(of requestCount, d time.Duration) {
	of.bucket = models.DurationBucket(d)
	s.counts.add(of, amount{1, max(d, 0).Milliseconds()})
}

// firstToken counts the time to the first token.
func (r *openRequest) firstToken() {
	now := r.s.store.Now()
	r.s.countDuration(requestCount{r.Deployment.First(), now.UTC().Truncate(time.Minute), models.MeasureFirstToken, 0}, now.Sub(r.began))
}

// done counts the request, which has ended with an error, or without, and what it had and gave.
func (r *openRequest) done(inputTokens, outputs int, err error) {
	r.s.countRequest(r.Deployment, r.began, err)
	of := requestCount{deployment: r.Deployment.First(), minute: r.s.store.Now().UTC().Truncate(time.Minute)}
	of.measure = models.MeasureInputTokens
	r.s.counts.add(of, amount{count: int64(inputTokens)})
	of.measure = models.MeasureOutputs
	r.s.counts.add(of, amount{count: int64(outputs)})
}

// KeepCounts saves what is counted of requests to deployments until ctx ends, and once more then: end it after the last
// request.
func (s *Service) KeepCounts(ctx context.Context, log *slog.Logger) {
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-time.After(countsPeriod):
		}
		saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), countsTimeout)
		if err := s.SaveCounts(saving); err != nil {
			log.WarnContext(ctx, "cannot save what is counted of requests to deployments", "err", err)
		}
		cancel()
	}
}

// SaveCounts saves what this server has counted of requests to deployments. On an error it is kept for the next
// time, unless it is older than an hour; what was committed all the same counts twice.
func (s *Service) SaveCounts(ctx context.Context) error {
	taken, now := s.counts.take(), s.store.Now()
	prune := s.counts.pruneDue(now)
	if len(taken) == 0 && !prune {
		return nil
	}
	err := s.store.InTx(ctx, func(q *store.Queries) error {
		err := q.AddDeploymentCounts(storedCounts(taken))
		for step, kept := range stepsKept {
			if prune && kept > 0 && err == nil {
				err = q.PruneDeploymentCounts(step, now.Add(-kept))
			}
		}
		return err
	})
	if err == nil && prune {
		s.counts.setPruned(now)
	}
	for of, n := range taken {
		if err != nil && now.Sub(of.minute) < countsKept {
			s.counts.add(of, n)
		}
	}
	return err
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
