package models

import "time"

// GraphProgress is what a run of a task graph has done, beside its plan. Planned times are in
// seconds after the start; those of operators that run are not corrected.
type GraphProgress struct {
	Name            string           `json:"name,omitempty" doc:"name of the graph; absent if it has none"`
	StartedAt       time.Time        `json:"started_at" doc:"start of the first attempt"`
	EndedAt         *time.Time       `json:"ended_at" doc:"end of the last attempt; null while it runs, or if it was killed"`
	Code            *int             `json:"exit_code" doc:"exit code of the last attempt; null like its end"`
	Failed          string           `json:"failed,omitempty" doc:"what has ended the last attempt, if its exit code is not 0"`
	Interrupted     bool             `json:"interrupted" doc:"the run has ended before the graph: its process was killed"`
	Attempts        int              `json:"attempts" doc:"number of attempts; each resumes the one before"`
	Revisions       int              `json:"revisions" doc:"how often the plan was revised because utilization has crossed a threshold"`
	PlannedAt       time.Time        `json:"planned_at" doc:"time of the latest plan"`
	Mode            GraphMode        `json:"mode" enum:"parallel,reduced,serial" doc:"how branches share CPUs by the latest plan"`
	Reason          string           `json:"reason" doc:"why this mode"`
	Relative        bool             `json:"relative" doc:"planned times are ratios"`
	Utilization     float64          `json:"utilization" doc:"utilization of the machine by others at the latest plan, percent"`
	SecondThreshold float64          `json:"second_threshold" doc:"utilization from which branches share fewer CPUs, percent"`
	FirstThreshold  float64          `json:"first_threshold" doc:"utilization above which operators run one after another, percent"`
	Plans           []GraphDecision  `json:"plans" doc:"latest 100 plans, oldest first"`
	Samples         []GraphSample    `json:"samples" doc:"utilization when it has changed, oldest first; at most 600, of a long run fewer per hour"`
	Branches        []BranchProgress `json:"branches" doc:"branches of the graph, in the order of the first plan"`
}

// GraphDecision is a plan: when and why it was made.
type GraphDecision struct {
	At          time.Time `json:"at"`
	Mode        GraphMode `json:"mode" enum:"parallel,reduced,serial" doc:"how branches share CPUs"`
	Utilization float64   `json:"utilization" doc:"utilization of the machine by others, percent"`
	Reason      string    `json:"reason" doc:"why this mode"`
}

// GraphSample is a measurement of the machine while a graph runs.
type GraphSample struct {
	At          time.Time `json:"at"`
	Utilization float64   `json:"utilization" doc:"utilization of the machine by others, percent"`
}

// BranchProgress is what a branch was planned to do, and what it has done.
type BranchProgress struct {
	Branch       string             `json:"branch" doc:"name of the branch"`
	Stage        int                `json:"stage" doc:"stage of the latest plan that has it, from 1"`
	CPUs         []int              `json:"cpus" doc:"numbers of the CPUs of its latest operator; of none yet, by the latest plan"`
	PlannedFrom  float64            `json:"planned_from_seconds" doc:"planned start, after the start of the graph"`
	PlannedUntil float64            `json:"planned_until_seconds" doc:"planned end, after the start of the graph"`
	StartedAt    *time.Time         `json:"started_at" doc:"null: not yet"`
	EndedAt      *time.Time         `json:"ended_at" doc:"null: not yet"`
	Failed       bool               `json:"failed" doc:"an operator has failed"`
	Operators    []OperatorProgress `json:"operators" doc:"its operators, in their order"`
}

// OperatorProgress is what an operator has done.
type OperatorProgress struct {
	Operator  string     `json:"operator" doc:"name of the operator"`
	Attempts  int        `json:"attempts" doc:"how often it was started"`
	CPUs      []int      `json:"cpus" doc:"numbers of the CPUs that it ran on"`
	StartedAt *time.Time `json:"started_at" doc:"start of its latest attempt; null: not yet"`
	EndedAt   *time.Time `json:"ended_at" doc:"null: it has not ended"`
	Code      *int       `json:"exit_code" doc:"null: it has not ended"`
	Seconds   float64    `json:"seconds" doc:"measured time on one CPU"`
}
