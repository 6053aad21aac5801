package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool"
	"weir/pool/estimates"
	"weir/pool/placement"
	"weir/pool/queue"
)

func (a rest) poolOperations(s section) {
	register(a, s, route{http.MethodGet, "/pool", 200, "get-pool",
		models.Say("Get the pool: devices, shares, totals, queue and recent decisions")}, a.getPool)
}

// Pool is the pool as the actor may see it: shares and requests of other projects are
// anonymous.
type Pool struct {
	Providers []Provider       `json:"providers"`
	Totals    PoolTotals       `json:"totals"`
	Computing *int64           `json:"computing,omitempty" doc:"average utilization that GPUs have reported, percent; made up for simulated ones; absent without reports"`
	Waiting   []QueueEntry     `json:"waiting" doc:"queue, in scheduling order"`
	Unmet     []Unmet          `json:"unmet,omitempty" doc:"unmet demand; visible to platform administrators"`
	Decisions []DecisionRecord `json:"decisions" doc:"recent decisions, newest first"`
	Decided   int64            `json:"decided" doc:"total number of decisions"`
}

// PoolTotals adds up the pool.
type PoolTotals struct {
	GPUs             int   `json:"gpus"`
	Cores            int64 `json:"cores"`
	FreeCores        int64 `json:"free_cores"`
	CoresInUse       int64 `json:"cores_in_use"`
	MemoryMiB        int64 `json:"memory_mib"`
	FreeMemoryMiB    int64 `json:"free_memory_mib"`
	MemoryMiBInUse   int64 `json:"memory_mib_in_use"`
	LargestFreeCores int64 `json:"largest_free_cores" doc:"most available GPU cores on one device"`
}

// QueueEntry is a workspace or a run in the queue.
type QueueEntry struct {
	Position    int           `json:"position"`
	Behind      string        `json:"behind,omitempty" enum:"priority,overdue,fairness,age" doc:"reason for the position after the preceding request; absent for the first"`
	Anonymous   bool          `json:"anonymous"`
	WorkspaceID int64         `json:"workspace_id,omitempty"`
	Workspace   string        `json:"workspace,omitempty"`
	RunID       int64         `json:"run_id,omitempty" doc:"run ID"`
	Run         string        `json:"run,omitempty" doc:"program of the run"`
	ProjectID   int64         `json:"project_id,omitempty"`
	Project     string        `json:"project,omitempty"`
	User        string        `json:"user,omitempty"`
	Demand      models.Demand `json:"demand"`
	Reason      string        `json:"reason,omitempty"`
	Since       time.Time     `json:"since"`
	Estimate    Estimate      `json:"estimate"`
}

func estimateOf(f pool.Estimate) Estimate {
	v := Estimate{Outcome: f.Outcome.String(), Known: f.Known, Text: f.Text.String()}
	if f.Outcome == estimates.Placed {
		v.At = utc(&f.At)
	}
	return v
}

// Unmet is demand that the pool does not meet, by model and size.
type Unmet struct {
	Model   string     `json:"gpu_model,omitempty" doc:"GPU model; absent for any"`
	GPUs    int64      `json:"gpus"`
	Cores   int64      `json:"cores" doc:"GPU cores per GPU"`
	Waiting int64      `json:"waiting" doc:"number of queued requests"`
	Refused int64      `json:"refused" doc:"number of requests refused in the last 24 hours"`
	Oldest  *time.Time `json:"oldest,omitempty" doc:"queue time of the oldest request"`
}

func unmetOf(u pool.UnmetView) Unmet {
	return Unmet{u.Model, u.GPUs, u.Cores, u.Waiting, u.Refused, utc(u.Oldest)}
}

// DecisionRecord is a past decision of the pool.
type DecisionRecord struct {
	ID          int64     `json:"id"`
	At          time.Time `json:"at"`
	ProjectID   int64     `json:"project_id"`
	Project     string    `json:"project"`
	User        string    `json:"user"`
	WorkspaceID *int64    `json:"workspace_id,omitempty" doc:"workspace ID; absent if the launch was refused"`
	RunID       *int64    `json:"run_id,omitempty" doc:"run ID"`

	DeploymentID *int64 `json:"deployment_id,omitempty" doc:"deployment ID"`
	Outcome      string `json:"outcome" enum:"granted,partial,delayed,refused"`
	Demand       string `json:"demand"`
	Explanation  string `json:"explanation"`
}

func queueEntryOf(w pool.WaitingView) QueueEntry {
	v := QueueEntry{Position: w.Position, Anonymous: w.Anonymous, ProjectID: w.ProjectID, Project: w.ProjectName,
		User: w.UserName, Demand: w.Demand, Reason: w.Reason.String(), Since: w.RequestedAt.UTC(), Estimate: estimateOf(w.Estimate)}
	switch w.Kind {
	case models.HolderWorkspace:
		v.WorkspaceID, v.Workspace = w.ObjectID, w.Name
	case models.HolderRun:
		v.RunID, v.Run = w.ObjectID, w.Name
	}
	if w.Behind != queue.First {
		v.Behind = w.Behind.String()
	}
	return v
}

func decisionOf(d store.DecisionRecordView) DecisionRecord {
	v := DecisionRecord{ID: d.ID, At: d.At.UTC(), ProjectID: d.ProjectID, Project: d.ProjectName, User: d.UserName, Outcome: d.Outcome,
		Demand: d.Demand.String(), Explanation: d.Explanation.String()}
	switch d.Kind {
	case models.HolderRun:
		v.RunID = d.ObjectID
	case models.HolderDeployment:
		v.DeploymentID = d.ObjectID
	default:
		v.WorkspaceID = d.ObjectID
	}
	return v
}

func totalsOf(t placement.Totals) PoolTotals {
	return PoolTotals{t.GPUs, t.Cores, t.FreeCores, t.CoresInUse, t.MemoryMiB, t.FreeMemoryMiB, t.MemoryMiBInUse, t.LargestFreeCores}
}

func (a rest) getPool(ctx context.Context, _ *struct{}) (*Response[Pool], error) {
	v, err := a.Pool.View(ctx, actorOf(ctx))
	if err != nil {
		return nil, err
	}
	p := Pool{Providers: models.Map(v.Providers, providerOf), Totals: totalsOf(v.Totals), Waiting: models.Map(v.Waiting, queueEntryOf),
		Unmet: models.Map(v.Unmet, unmetOf), Decisions: models.Map(v.Decisions, decisionOf), Decided: v.DecisionCount}
	if v.Computing >= 0 {
		p.Computing = &v.Computing
	}
	return &Response[Pool]{p}, nil
}
