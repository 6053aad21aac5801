package barrier

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"weir/models"
)

// MaxBytes is the most bytes of PTX that [Allocate] accepts.
const MaxBytes = 64 << 20 // 64 MiB

// Options say what barriers there are.
type Options struct {
	Physical int // barriers of a thread block, 1 to 16; 0: 16
	Threads  int // in one dimension, of kernels that do not state .reqntid; 0: not known
}

// Allocate rewrites a module of PTX for physical barriers. What it cannot handle it refuses
// with the line and the reason, in a [models.Error] about the field ptx, physical or threads.
// If the context ends before, its error is returned.
func Allocate(ctx context.Context, source string, o Options) (models.BarrierAllocation, error) {
	if o.Physical == 0 {
		o.Physical = maxPhysical
	}
	if o.Physical < 1 || o.Physical > maxPhysical {
		return models.BarrierAllocation{}, models.Invalid("physical", "must be from %d to %d", 1, maxPhysical)
	}
	if o.Threads < 0 || o.Threads > maxThreads {
		return models.BarrierAllocation{}, models.Invalid("threads", "must be from %d to %d", 0, maxThreads)
	}
	if len(source) > MaxBytes {
		return models.BarrierAllocation{}, models.Invalid("ptx", "must be at most %s", "64 MiB")
	}
	m, err := parse(source)
	if err != nil {
		return models.BarrierAllocation{}, err
	}
	a := models.BarrierAllocation{Report: models.BarrierReport{Physical: o.Physical, Kernels: []models.BarrierKernel{}}}
	edits := m.removals()
	for _, f := range m.functions {
		k, own, err := allocate(ctx, m, f, o)
		if err != nil {
			return models.BarrierAllocation{}, err
		}
		if k != nil {
			a.Report.Kernels, edits = append(a.Report.Kernels, *k), append(edits, own...)
		}
	}
	a.PTX = rewrite(source, edits)
	return a, nil
}

// allocate allocates the barriers of one function; nil: it uses none.
func allocate(ctx context.Context, m *module, f *function, o Options) (*models.BarrierKernel, []edit, error) {
	g, err := flowOf(f, m.named)
	if err != nil || len(g.ops) == 0 {
		return nil, nil, err
	}
	if !f.entry {
		return nil, nil, refuse(g.ops[0].line,
			models.Say("function %s uses a barrier, and it is not known which barriers its callers use meanwhile; inline it", f.name))
	}
	shape := f.shape
	if f.threads() == 0 && o.Threads > 0 {
		shape = [3]int{o.Threads, 1, 1}
	}
	p, err := newPlan(ctx, g, shape)
	if err != nil {
		return nil, nil, err
	}
	segments := p.segments()
	results := make([]assignment, len(segments))
	if err := inParallel(len(segments), func(i int) error {
		if err := cmp.Or(ctx.Err(), segments[i].check()); err != nil {
			return err
		}
		if err := segments[i].order(ctx); err != nil {
			return err
		}
		results[i] = assign(segments[i].overs())
		return nil
	}); err != nil {
		return nil, nil, err
	}
	report := &models.BarrierKernel{Name: f.name, Line: f.line, Threads: shape[0] * shape[1] * shape[2]}
	names, physical, left := map[string]bool{}, map[int]bool{}, make([]arrivals, o.Physical)
	var edits []edit
	for i, s := range segments {
		if err := s.missing(results[i], left); err != nil {
			return nil, nil, err
		}
		numbers := s.numbers(results[i], left)
		edits = append(edits, s.edits(numbers)...)
		if len(s.barriers) > 0 {
			report.Segments = append(report.Segments, s.report(results[i], numbers))
		}
		for b, l := range s.barriers {
			names[l.name], physical[numbers[b]] = true, true
			left[numbers[b]] = max(left[numbers[b]], l.remaining())
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

// missing refuses a segment that needs more barriers than there are without those at which
// earlier segments leave arrivals: one of them would complete the next phase too early.
func (s *segment) missing(a assignment, left []arrivals) error {
	free, lines, which := len(left)-count(left, remain), s.lines(), models.Say("these overlap: %s", strings.Join(s.namesOf(a.overlap), ", "))
	if a.method == FirstFit {
		which = models.Say("%s overlaps with each of these: %s", s.barriers[a.crowd[0]].name, strings.Join(s.namesOf(a.crowd[1:]), ", "))
	}
	switch {
	case a.used <= free:
		return nil
	case free < len(left):
		return models.Invalid("ptx", "line %d: segment %d of %s (lines %d to %d) needs %d barriers, %d more than there are without the %d "+
			"at which arrivals of earlier segments remain; %s", lines[0], s.number+1, s.name, lines[0], lines[1], a.used, a.used-free,
			len(left)-free, which)
	}
	return models.Invalid("ptx", "line %d: segment %d of %s (lines %d to %d) needs %d barriers, %d more than there are; %s",
		lines[0], s.number+1, s.name, lines[0], lines[1], a.used, a.used-free, which)
}

// count is how many physical barriers have such arrivals.
func count(left []arrivals, one arrivals) (n int) {
	for _, l := range left {
		if l == one {
			n++
		}
	}
	return n
}

// numbers gives each barrier its physical barrier: each row has the number that its first
// barrier has in the source, if it is one that is free, else the lowest that is. None is free
// at which arrivals of earlier segments remain nor, as long as there are enough, at which they may.
func (s *segment) numbers(a assignment, left []arrivals) []int {
	byRow, taken := slices.Repeat([]int{-1}, a.used), make([]bool, len(left))
	least := remain
	if count(left, none) >= a.used {
		least = mayRemain
	}
	for n, l := range left {
		taken[n] = l >= least
	}
	for b, l := range s.barriers {
		n, err := strconv.Atoi(l.name)
		if err == nil && n < len(left) && !taken[n] && byRow[a.rows[b]] < 0 {
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
