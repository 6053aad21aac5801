package models

// GraphMode is how the CPUs of a machine are shared among the branches of a graph.
type GraphMode string

const (
	GraphParallel GraphMode = "parallel" // branches side by side, on the CPUs that are idle
	GraphReduced  GraphMode = "reduced"  // the same, of fewer CPUs
	GraphSerial   GraphMode = "serial"   // one branch after another
)

// GraphMachine is the machine that a graph is planned for. Percentages are of its CPUs; where
// one of the last four is 0, its default applies.
type GraphMachine struct {
	CPUs            int `json:"cpus" query:"cpus" required:"true" minimum:"1" maximum:"1024" doc:"number of CPUs of the machine"`
	Utilization     int `json:"utilization,omitempty" query:"utilization" minimum:"0" maximum:"100" doc:"percent, by others; absent: 0"`
	SecondThreshold int `json:"second_threshold,omitempty" query:"second_threshold" minimum:"0" maximum:"100" doc:"percent; default 50"`
	FirstThreshold  int `json:"first_threshold,omitempty" query:"first_threshold" minimum:"0" maximum:"100" doc:"percent; default 70"`
	ReducedCPUs     int `json:"reduced_cpus,omitempty" query:"reduced_cpus" minimum:"0" maximum:"1024" doc:"default: three quarters"`
	SerialCPUs      int `json:"serial_cpus,omitempty" query:"serial_cpus" minimum:"0" maximum:"1024" doc:"default: half of the CPUs"`
}

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
	Stages          []GraphStage `json:"stages" doc:"branches that begin at the same time, in their order"`
	Text            Text         `json:"-"` // Reason, in any language
}

// GraphStage is branches that begin at the same time.
type GraphStage struct {
	From   float64      `json:"from_seconds" doc:"planned start"`
	Until  float64      `json:"until_seconds" doc:"planned end of the last of them"`
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

// ModelGraph is the operators of a model in ONNX format as a task graph, with its plan.
type ModelGraph struct {
	Path      FilePath       `json:"path" doc:"percent-encoded path of the file"`
	Name      string         `json:"name" doc:"name of the graph in the model; empty if it has none"`
	Operators int            `json:"operators" doc:"number of operators, without constants"`
	FLOPs     float64        `json:"flops" doc:"floating-point operations of all operators of which they are known"`
	Kinds     []OperatorKind `json:"kinds" doc:"operators by kind, those with the most floating-point operations first"`
	Times     FilePath       `json:"times,omitempty" doc:"percent-encoded path of the file with measured times that the plan uses; absent: none"`
	NoTimes   string         `json:"times_unused,omitempty" doc:"why the file with measured times beside the model is not used; absent: it is, or there is none"`
	WhyNot    Text           `json:"-"` // NoTimes, in any language
	Unknown   []string       `json:"unknown" doc:"kinds whose operations are not all known; the mean of the others is assumed"`
	Branches  []ModelBranch  `json:"branches" doc:"branches of the graph, in the order of the model"`
	Plan      GraphPlan      `json:"plan" doc:"which CPUs the branches run on"`
}

// ModelBranch is a branch of a model's graph.
type ModelBranch struct {
	Branch    string         `json:"branch" doc:"name of the branch, which is that of its first operator"`
	Operators int            `json:"operators" doc:"number of its operators"`
	FLOPs     float64        `json:"flops" doc:"floating-point operations of those of which they are known"`
	Kinds     []OperatorKind `json:"kinds" doc:"its operators by kind"`
}

// OperatorKind is the operators of a kind.
type OperatorKind struct {
	Kind      string  `json:"kind" doc:"such as Conv"`
	Operators int     `json:"operators" doc:"number of operators"`
	FLOPs     float64 `json:"flops" doc:"floating-point operations of those of which they are known"`
}
