package broker

import (
	"cmp"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/timeline"
)

const (
	// noShowHalfLife is the time after which a reservation that was not used counts half.
	noShowHalfLife = 7 * 24 * time.Hour
	noShowsCounted = 5 * noShowHalfLife
	// endNotice is how long before its end the member of a preemptible reservation knows it.
	endNotice = 5 * time.Minute
)

// Priority is what is asked for beside GPUs and time.
type Priority struct {
	Class    models.PriorityClass `json:"class,omitempty" enum:"high,normal,low" default:"normal" doc:"priority class"`
	QoS      models.QoS           `json:"qos,omitempty" enum:"guaranteed,standard,best_effort,preemptible" default:"standard" doc:"QoS level"`
	TaskType models.TaskType      `json:"task_type,omitempty" enum:"interactive,inference,training,batch" default:"interactive" doc:"task type"`
}

// check completes and checks the priority that an actor asks for.
func (s *Service) checkPriority(actor policies.Actor, project int64, in *Priority) error {
	var p models.Problems
	in.Class, in.QoS = cmp.Or(in.Class, models.ClassNormal), cmp.Or(in.QoS, models.QoSStandard)
	in.TaskType = cmp.Or(in.TaskType, models.TaskInteractive)
	if !slices.Contains(models.PriorityClasses, in.Class) {
		p.Add("class", "must be high, normal or low")
	}
	if !slices.Contains(models.QoSLevels, in.QoS) {
		p.Add("qos", "must be guaranteed, standard, best_effort or preemptible")
	}
	if !slices.Contains(models.TaskTypes, in.TaskType) {
		p.Add("task_type", "must be interactive, inference, training or batch")
	}
	if err := p.Err(); err != nil || s.access.May(actor, project, policies.RequestDecide) {
		return err
	}
	if in.Class == models.ClassHigh {
		p.Add("class", "can be high only for those who decide requests in the project")
	}
	if in.QoS == models.QoSGuaranteed {
		p.Add("qos", "can be guaranteed only for those who decide requests in the project")
	}
	return p.Err()
}

// standings returns what all requests in a project have in common.
func (s *Service) standings(q *store.Queries) (func(models.Project) timeline.Standing, error) {
	shares, err := s.pool.FairShares(q)
	return func(p models.Project) timeline.Standing {
		st := timeline.Standing{Client: float64(p.Priority) / 100}
		st.Use, st.AllUse, st.Share = shares(p)
		return st
	}, err
}

// noShows is the decayed number of the reservations that each user did not use.
func noShows(q *store.Queries, users ...int64) (map[int64]float64, error) {
	now := q.Now()
	missed, err := q.NoShows(now.Add(-noShowsCounted), users...)
	n := map[int64]float64{}
	for user, list := range missed {
		for _, at := range list {
			n[user] += timeline.Decay(1, now.Sub(at), noShowHalfLife)
		}
	}
	return n, err
}

// of is the standing of one request, which has waited, of those that have a standing in
// common.
func (p Priority) of(common timeline.Standing, waiting time.Duration) timeline.Standing {
	common.Class, common.QoS = factor(models.PriorityClasses, p.Class), factor(models.QoSLevels, p.QoS)
	common.Task, common.Waiting = factor(models.TaskTypes, p.TaskType), waiting
	return common
}

// factor is from 1 for the first value to 0 for the last.
func factor[T comparable](values []T, v T) float64 {
	return 1 - float64(slices.Index(values, v))/float64(len(values)-1)
}

func partsOf(st timeline.Standing) models.ScoreParts {
	return models.Map(timeline.DefaultWeights.Parts(st), func(p timeline.Part) models.ScorePart { return models.ScorePart(p) })
}

// leastCores is to how many GPU cores a QoS level lets a reservation be shrunk.
func leastCores(level models.QoS, cores int64) int64 {
	if level == models.QoSBestEffort || level == models.QoSPreemptible {
		return (cores + 1) / 2
	}
	return cores
}
