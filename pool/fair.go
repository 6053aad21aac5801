package pool

import (
	"sync"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/placement"
	"weir/pool/timeline"
)

const (
	// halfLife is the time after which use counts half in fair share.
	halfLife = 7 * 24 * time.Hour
	// countedDays is how far back use counts; what is older is less than a 32nd.
	countedDays = 35
)

// usedByProjects is the decayed use until a full hour, which does not change any more.
type usedByProjects struct {
	mu    sync.Mutex
	until time.Time
	use   map[int64]float64 // GPU core-hours
	all   float64
}

// read returns the use until the last full hour, from the shares that accounting adds up.
func (u *usedByProjects) read(q *store.Queries) (map[int64]float64, float64, error) {
	until := q.Now().Truncate(time.Hour)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.until.Equal(until) {
		return u.use, u.all, nil
	}
	const day = 24 * time.Hour
	sums, err := q.ShareStepsBy(store.ShareSpan{From: until.Add(-countedDays * day), Until: until}, store.SharesByProject, day, countedDays)
	if err != nil {
		return nil, 0, err
	}
	use, all := map[int64]float64{}, 0.0
	for _, s := range sums {
		middle := time.Duration(countedDays-s.Step)*day - day/2
		left := timeline.Decay(float64(s.CoreMS)/float64(time.Hour/time.Millisecond), middle, halfLife)
		use[s.Key], all = use[s.Key]+left, all+left
	}
	u.until, u.use, u.all = until, use, all
	return use, all, nil
}

// FairShares returns for a project its decayed use and that of all projects, in GPU
// core-hours, and the project's share: its part of the sum of quotas. An unlimited quota
// counts as all GPUs.
func (s *Scheduler) FairShares(q *store.Queries) (func(p models.Project) (use, all, share float64), error) {
	byProject, all, err := s.used.read(q)
	if err != nil {
		return nil, err
	}
	snap, err := s.load(q)
	if err != nil {
		return nil, err
	}
	gpus := int64(0)
	for _, m := range snap.machines {
		for _, d := range m.devices {
			if d.ParentID == nil {
				gpus++
			}
		}
	}
	whole := gpus * placement.Whole
	sum, err := q.QuotaCores(whole)
	return func(p models.Project) (use, _, share float64) {
		if own := p.Quota.GPUCores; sum > 0 {
			if models.IsUnlimited(own) {
				own = whole
			}
			share = float64(own) / float64(sum)
		}
		return byProject[p.ID], all, share
	}, err
}
