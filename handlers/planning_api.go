package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/pool"
	"weir/pool/placement/history"
)

func (a rest) planningOperations(s section) {
	register(a, s, route{http.MethodPost, "/pool/planning", 200, "plan-capacity",
		models.Say("Simulate past demand on the current and an extended pool; requires platform administrator")}, a.planning)
}

// Planning compares the pool's past on its machines, and with more.
type Planning struct {
	Added          string  `json:"added"`
	Policy         string  `json:"policy"`
	Days           int64   `json:"days" doc:"number of past days"`
	Requests       int     `json:"requests"`
	Assumed        int     `json:"assumed" doc:"requests that never ran; assumed to have the median duration"`
	AssumedSeconds float64 `json:"assumed_seconds"`
	Now            Replay  `json:"now"`
	Then           Replay  `json:"then" doc:"result with the added machines"`
}

// Replay is how the requests of the past go on some machines.
type Replay struct {
	Machines      int           `json:"machines"`
	GPUs          int           `json:"gpus"`
	CapacityCores int64         `json:"capacity_gpu_cores"`
	Placed        int           `json:"placed"`
	Waited        int           `json:"waited" doc:"number of placed requests that were queued first"`
	Refused       int           `json:"refused"`
	MedianSeconds float64       `json:"median_wait_seconds"`
	P90Seconds    float64       `json:"p90_wait_seconds"`
	MaxSeconds    float64       `json:"max_wait_seconds"`
	GPUHours      float64       `json:"gpu_hours" doc:"GPU hours served"`
	InUsePercent  int64         `json:"in_use_percent" doc:"average share of the capacity in use, percent"`
	Points        []ReplayPoint `json:"points" doc:"average GPU cores per interval"`
	Unmet         []ReplayUnmet `json:"unmet" doc:"unmet demand, largest first"`
}

// ReplayPoint is a pool's mean state from a moment on, in GPU cores.
type ReplayPoint struct {
	At       time.Time `json:"at"`
	Capacity float64   `json:"capacity"`
	InUse    float64   `json:"in_use"`
	Waiting  float64   `json:"waiting" doc:"GPU cores requested by queued requests"`
}

// ReplayUnmet is demand of one model and size that was not met, or not at
// once.
type ReplayUnmet struct {
	Model         string  `json:"gpu_model,omitempty" doc:"GPU model; absent for any"`
	GPUs          int     `json:"gpus"`
	Cores         int64   `json:"cores" doc:"GPU cores per GPU"`
	Refused       int     `json:"refused"`
	Waited        int     `json:"waited"`
	LongestWaited float64 `json:"longest_wait_seconds"`
}

func seconds(s history.Seconds) float64 { return time.Duration(s).Seconds() }

func replayOf(r history.Result) Replay {
	return Replay{Machines: r.Machines, GPUs: r.GPUs, CapacityCores: r.CapacityCores, Placed: r.Placed, Waited: r.Waited, Refused: r.Refused,
		MedianSeconds: seconds(r.Waits.Median), P90Seconds: seconds(r.Waits.P90), MaxSeconds: seconds(r.Waits.Max),
		GPUHours: r.CoreHours / 100, InUsePercent: inUsePercent(r),
		Points: models.Map(r.Points, func(p history.Point) ReplayPoint { return ReplayPoint{p.At.UTC(), p.Capacity, p.InUse, p.Waiting} }),
		Unmet: models.Map(r.Unmet, func(u history.Unmet) ReplayUnmet {
			return ReplayUnmet{u.Model, u.GPUs, u.Cores, u.Refused, u.Waited, seconds(u.LongestWait)}
		})}
}

func (a rest) planning(ctx context.Context, in *Create[pool.PlanningInput]) (*Response[Planning], error) {
	v, err := a.Pool.Planning(ctx, actorOf(ctx), in.Body)
	return &Response[Planning]{Planning{v.Added, v.Policy, v.Days, v.Jobs, v.Assumed, seconds(v.Span), replayOf(v.Now), replayOf(v.Then)}}, err
}
