package barrier

import (
	"cmp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"weir/models"
)

// MaxBytes is the most bytes of PTX that [Allocate] accepts.
const MaxBytes = 64 << 20

// Options say what barriers there are.
type Options struct {
	Physical int // barriers of a thread block, 1 to 16; 0: 16
	Threads  int // in one dimension, of kernels that do not state .reqntid; 0: not known
}

// Allocation is a module with physical barriers, and how they were allocated.
type Allocation struct {
	PTX      string         `json:"ptx" doc:"the module with physical barriers; everything else is unchanged"`
	Physical int            `json:"physical" doc:"physical barriers that there are"`
	Kernels  []KernelReport `json:"kernels" doc:"kernels that use barriers, in the order of the source"`
}

// KernelReport is how the barriers of a kernel were allocated.
type KernelReport struct {
	Name     string          `json:"name"`
	Line     int             `json:"line" doc:"line of the source"`
	Threads  int             `json:"threads" doc:"threads of a block, by .reqntid or as given; 0 if not known"`
	Logical  int             `json:"logical" doc:"logical barriers that the kernel uses"`
	Used     int             `json:"used" doc:"physical barriers that it uses now"`
	Segments []SegmentReport `json:"segments"`
}

// SegmentReport is how the barriers of a segment were allocated.
type SegmentReport struct {
	Number   int             `json:"number" doc:"from 1"`
	From     int             `json:"from_line"`
	Until    int             `json:"until_line"`
	Strong   string          `json:"strong,omitempty" doc:"the strong barrier that ends the segment; absent for the last"`
	Method   Method          `json:"method" enum:"intervals,matching,first_fit" doc:"intervals and matching use the fewest physical barriers; first_fit at most one more than the barriers that overlap with one"`
	Used     int             `json:"used" doc:"physical barriers that the segment uses"`
	Overlap  []string        `json:"overlap" doc:"barriers of which none is over before another: as many physical barriers are needed at least"`
	Steps    int             `json:"steps" doc:"length of the time axis of the lifetimes"`
	Barriers []BarrierReport `json:"barriers"`
}

// BarrierReport is a logical barrier in a segment: its physical barrier, its lifetime and
// its place in the segment's graph.
type BarrierReport struct {
	Name      string       `json:"name" doc:"number or name in the source"`
	Physical  int          `json:"physical"`
	Threads   int          `json:"threads" doc:"threads that take part; 0: all of the block; -1: in a register"`
	From      int          `json:"from_step" doc:"first step of its lifetime"`
	Until     int          `json:"until_step" doc:"last step of its lifetime"`
	Producers []BarrierUse `json:"producers" doc:"operations that arrive and do not wait"`
	Consumers []BarrierUse `json:"consumers" doc:"operations that wait"`
	After     []string     `json:"after" doc:"barriers that are over before it begins, without those that follow from others"`
	Reuses    string       `json:"reuses,omitempty" doc:"the barrier of the segment that had its physical barrier before"`
	Unknown   bool         `json:"unknown" doc:"the participants are not known, so little is known about what is over when it completes"`
	Loop      bool         `json:"loop" doc:"it arrives in a loop or a branch: its arrivals are taken to be complete when it is left"`
	LeftOver  bool         `json:"left_over" doc:"arrivals remain at the end, so its physical barrier is not reused in the segment"`
}

// BarrierUse is one operation on a barrier.
type BarrierUse struct {
	Line      int    `json:"line"`
	Operation string `json:"operation" enum:"arrive,sync,red"`
	Warps     []int  `json:"warps" doc:"warps that can come here; empty if the number of threads is not known"`
}

// Allocate rewrites a module of PTX for physical barriers. What it cannot handle it refuses
// with the line and the reason, in a [models.Error] about the field ptx, physical or threads.
func Allocate(source string, o Options) (Allocation, error) {
	if o.Physical == 0 {
		o.Physical = maxPhysical
	}
	if o.Physical < 1 || o.Physical > maxPhysical {
		return Allocation{}, models.Invalid("physical", "must be from %d to %d", 1, maxPhysical)
	}
	if o.Threads < 0 || o.Threads > maxThreads {
		return Allocation{}, models.Invalid("threads", "must be from %d to %d", 0, maxThreads)
	}
	if len(source) > MaxBytes {
		return Allocation{}, models.Invalid("ptx", "must be at most %d bytes", MaxBytes)
	}
	m, err := parse(source)
	if err != nil {
		return Allocation{}, err
	}
	a := Allocation{Physical: o.Physical, Kernels: []KernelReport{}}
	edits := m.removals()
	for _, f := range m.functions {
		k, own, err := allocate(m, f, o)
		if err != nil {
			return Allocation{}, err
		}
		if k != nil {
			a.Kernels, edits = append(a.Kernels, *k), append(edits, own...)
		}
	}
	a.PTX = rewrite(source, edits)
	return a, nil
}

// allocate allocates the barriers of one function; nil: it uses none.
func allocate(m *module, f *function, o Options) (*KernelReport, []edit, error) {
	g, err := flowOf(f, m.named)
	if err != nil || len(g.ops) == 0 {
		return nil, nil, err
	}
	if !f.entry {
		return nil, nil, refuse(g.ops[0].line, models.Say("function %s uses a barrier, and it is not known which barriers its callers use meanwhile; inline it", f.name))
	}
	shape := f.shape
	if f.threads() == 0 && o.Threads > 0 {
		shape = [3]int{o.Threads, 1, 1}
	}
	p := newPlan(g, shape)
	segments := p.segments()
	results := make([]assignment, len(segments))
	if err := inParallel(len(segments), func(i int) error {
		if err := segments[i].check(); err != nil {
			return err
		}
		if err := segments[i].order(); err != nil {
			return err
		}
		results[i] = assign(segments[i].overs())
		return nil
	}); err != nil {
		return nil, nil, err
	}
	report := &KernelReport{Name: f.name, Line: f.line, Threads: shape[0] * shape[1] * shape[2]}
	names, physical := map[string]bool{}, map[int]bool{}
	var edits []edit
	for i, s := range segments {
		if results[i].used > o.Physical {
			return nil, nil, s.missing(results[i], o.Physical)
		}
		numbers := s.numbers(results[i], o.Physical)
		edits = append(edits, s.edits(numbers)...)
		if len(s.barriers) > 0 {
			report.Segments = append(report.Segments, s.report(results[i], numbers))
		}
		for b, l := range s.barriers {
			names[l.name], physical[numbers[b]] = true, true
		}
	}
	report.Logical, report.Used = len(names), len(physical)
	return report, append(edits, g.unreached(p)...), nil
}

// inParallel calls do for 0 to n-1 and returns the error of the first that has one.
func inParallel(n int, do func(int) error) error {
	errs := make([]error, n)
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i := range n {
		limit <- struct{}{}
		all.Go(func() {
			errs[i] = do(i)
			<-limit
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

// overs are, for each barrier, those that are over before it.
func (s *segment) overs() (list []bitset) {
	for _, b := range s.barriers {
		list = append(list, b.over)
	}
	return list
}

// missing is the refusal of a segment that needs more barriers than there are.
func (s *segment) missing(a assignment, physical int) error {
	lines := s.lines()
	return models.Invalid("ptx", "line %d: segment %d of %s (lines %d to %d) needs %d barriers, %d more than there are; these overlap: %s",
		lines[0], s.number+1, s.name, lines[0], lines[1], a.used, a.used-physical, strings.Join(s.namesOf(a.overlap), ", "))
}

func (s *segment) namesOf(barriers []int) []string {
	names := make([]string, len(barriers))
	for i, b := range barriers {
		names[i] = s.barriers[b].name
	}
	return names
}

// numbers gives each barrier its physical barrier: each row has the number that its first
// barrier has in the source, if it is one that is free, else the lowest that is.
func (s *segment) numbers(a assignment, physical int) []int {
	byRow, taken := slices.Repeat([]int{-1}, a.used), make([]bool, physical)
	for b, l := range s.barriers {
		n, err := strconv.Atoi(l.name)
		if err == nil && n < physical && !taken[n] && byRow[a.rows[b]] < 0 {
			byRow[a.rows[b]], taken[n] = n, true
		}
	}
	for row := range byRow {
		if byRow[row] < 0 {
			byRow[row] = slices.Index(taken, false)
			taken[byRow[row]] = true
		}
	}
	numbers := make([]int, len(s.barriers))
	for b := range numbers {
		numbers[b] = byRow[a.rows[b]]
	}
	return numbers
}

// edit replaces bytes of the source.
type edit struct {
	from, to int
	text     string
}

// edits write the physical barriers of a segment into its operations.
func (s *segment) edits(numbers []int) (list []edit) {
	for b, l := range s.barriers {
		for _, n := range l.nodes {
			list = append(list, numbered(s.operation(n), numbers[b]))
		}
	}
	return list
}

func numbered(op *operation, number int) edit {
	if n, ok := integer(op.id.text); ok && n == int64(number) {
		return edit{op.id.from, op.id.to, op.id.text}
	}
	return edit{op.id.from, op.id.to, strconv.Itoa(number)}
}

// unreached gives operations that no warp reaches a valid barrier.
func (g *flow) unreached(p *plan) (list []edit) {
	for n, node := range g.nodes {
		if node.op >= 0 && !p.used[n] {
			list = append(list, numbered(g.ops[node.op], 0))
		}
	}
	return list
}

// removals take the directives away that are not of PTX.
func (m *module) removals() (list []edit) {
	for _, d := range m.drop {
		list = append(list, edit{d[0], d[1], ""})
	}
	return list
}

// rewrite applies edits that do not overlap.
func rewrite(source string, edits []edit) string {
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var out strings.Builder
	out.Grow(len(source))
	at := 0
	for _, e := range edits {
		out.WriteString(source[at:e.from])
		out.WriteString(e.text)
		at = e.to
	}
	out.WriteString(source[at:])
	return out.String()
}
