package models

// BarrierAllocation is a module of PTX with physical barriers, and how they were allocated.
type BarrierAllocation struct {
	PTX    string        `json:"ptx" doc:"module with physical barriers; everything else is unchanged"`
	Report BarrierReport `json:"report"`
}

// BarrierReport is how the barriers of a module were allocated.
type BarrierReport struct {
	Physical int             `json:"physical" doc:"number of physical barriers available"`
	Kernels  []BarrierKernel `json:"kernels" doc:"kernels that use barriers, in the order of the source"`
}

// BarrierKernel is how the barriers of a kernel were allocated.
type BarrierKernel struct {
	Name     string           `json:"name"`
	Line     int              `json:"line" doc:"line of the source"`
	Threads  int              `json:"threads" doc:"threads of a block, by .reqntid or as given; 0 if not known"`
	Logical  int              `json:"logical" doc:"number of logical barriers"`
	Used     int              `json:"used" doc:"number of physical barriers used after the allocation"`
	Segments []BarrierSegment `json:"segments"`
}

// BarrierSegment is how the barriers of a segment were allocated.
type BarrierSegment struct {
	Number   int             `json:"number" doc:"from 1"`
	From     int             `json:"from_line"`
	Until    int             `json:"until_line"`
	Strong   string          `json:"strong,omitempty" doc:"strong barrier that ends the segment; absent for the last one"`
	Method   string          `json:"method" enum:"intervals,matching,first_fit" doc:"intervals and matching use the fewest"`
	Used     int             `json:"used" doc:"number of physical barriers used"`
	Overlap  []string        `json:"overlap" doc:"barriers that overlap pairwise; at least as many physical barriers are needed"`
	Steps    int             `json:"steps" doc:"length of the time axis of the lifetimes"`
	Barriers []KernelBarrier `json:"barriers"`
}

// KernelBarrier is a logical barrier in a segment: its physical barrier, its lifetime and its
// place in the segment's graph.
type KernelBarrier struct {
	Name      string       `json:"name" doc:"number or name in the source"`
	Physical  int          `json:"physical" doc:"number of the physical barrier"`
	Threads   int          `json:"threads" doc:"number of threads that take part; 0: all of the block; -1: in a register"`
	From      int          `json:"from_step" doc:"first step of the lifetime"`
	Until     int          `json:"until_step" doc:"last step of the lifetime"`
	Producers []BarrierUse `json:"producers" doc:"operations that arrive without waiting"`
	Consumers []BarrierUse `json:"consumers" doc:"operations that wait"`
	After     []string     `json:"after" doc:"barriers that are over before it begins; without those that follow from others"`
	Reuses    string       `json:"reuses,omitempty" doc:"barrier of the segment that had the physical barrier before; absent if none"`
	Unknown   bool         `json:"unknown" doc:"which warps take part is not known"`
	Assumed   bool         `json:"assumed" doc:"arrivals in a loop or branch are assumed to be complete when it ends"`
	Pending   bool         `json:"pending" doc:"arrivals remain at the end; the physical barrier is not reused in the segment"`
}

// BarrierUse is one operation on a barrier.
type BarrierUse struct {
	Line      int    `json:"line" doc:"line of the source"`
	Operation string `json:"operation" enum:"arrive,sync,red" doc:"what it does with the barrier; sync and red wait"`
	Warps     []int  `json:"warps" doc:"warps that can execute it; empty if the number of threads is not known"`
}
