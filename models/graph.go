package models

// GraphMode is how the CPUs of a machine are shared among the branches of a graph.
type GraphMode string

const (
	GraphParallel GraphMode = "parallel" // branches side by side, on the CPUs that are idle
	GraphReduced  GraphMode = "reduced"  // the same, of fewer CPUs
	GraphSerial   GraphMode = "serial"   // one branch after another
)

// GraphPlan is which CPUs the branches of a graph run on, and when. Times are in seconds
// after the start of the graph.
type GraphPlan struct {
	Name            string       `json:"name,omitempty" doc:"name of the graph; absent if it has none"`
	CPUs            int          `json:"cpus" doc:"number of CPUs of the machine"`
	Utilization     float64      `json:"utilization" doc:"utilization of the machine by others, percent"`
	SecondThreshold float64      `json:"second_threshold" doc:"utilization from which branches share fewer CPUs, percent"`
	FirstThreshold  float64      `json:"first_threshold" doc:"utilization above which operators run one after another, percent"`
	ReducedCPUs     int          `json:"reduced_cpus" doc:"number of CPUs that takes the place of that of the machine between the thresholds"`
	SerialCPUs      int          `json:"serial_cpus" doc:"number of CPUs above the first threshold"`
	Mode            GraphMode    `json:"mode" enum:"parallel,reduced,serial" doc:"how branches share CPUs at this utilization"`
	Budget          int          `json:"budget" doc:"number of CPUs used at the same time at most"`
	Reason          string       `json:"reason" doc:"why this mode and this number of CPUs"`
	Relative        bool         `json:"relative" doc:"times are ratios: neither seconds nor a rate are known"`
	Makespan        float64      `json:"makespan_seconds" doc:"time of the plan, if operators are twice as fast on twice as many CPUs"`
	Serial          float64      `json:"serial_seconds" doc:"time of one operator after another on one CPU"`
	Equal           float64      `json:"equal_seconds" doc:"time with equal shares of the same CPUs"`
	Stages          []GraphStage `json:"stages" doc:"branches that run at the same time, in their order"`
	Text            Text         `json:"-"` // Reason, in any language
}

// GraphStage is branches that run at the same time, after those of the stage before.
type GraphStage struct {
	Level  int          `json:"level" doc:"number of forks before it, from 1"`
	Wave   int          `json:"wave" doc:"number in the level, from 1; there are several if branches exceed CPUs"`
	From   float64      `json:"from_seconds" doc:"planned start"`
	Until  float64      `json:"until_seconds" doc:"planned end"`
	Shares []GraphShare `json:"shares"`
}

// GraphShare is the CPUs of a branch.
type GraphShare struct {
	Branch    string   `json:"branch" doc:"name of the branch"`
	After     []string `json:"after" doc:"branches that end before it starts"`
	Operators []string `json:"operators" doc:"names of its operators, in their order"`
	Seconds   float64  `json:"seconds" doc:"time of its operators on one CPU"`
	Assumed   bool     `json:"assumed" doc:"the time of an operator is not known; the mean of the others is assumed"`
	Exact     float64  `json:"exact_share" doc:"share in proportion to time, before it is made whole"`
	CPUs      []int    `json:"cpus" doc:"numbers of its CPUs"`
	Until     float64  `json:"until_seconds" doc:"planned end"`
}
