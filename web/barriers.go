package web

import (
	"context"
	"slices"

	"weir/models"
)

// BarriersView is a module of PTX and, once it was allocated, the report about its barriers.
type BarriersView struct {
	Form   Form // ptx, physical, threads
	Report models.BarrierReport
	Done   bool
}

// BarriersExample is a kernel of two warps: one produces in five steps, the other consumes,
// with a strong barrier in the middle.
const BarriersExample = `.version 7.8
.target sm_80
.address_size 64
.weir.bar first, second, third, fourth, fifth;

.visible .entry pipeline()
.reqntid 64
{
	.reg .pred %p<2>;
	.reg .u32 %r<2>;
	mov.u32 %r1, %tid.x;
	setp.ge.u32 %p1, %r1, 32;
	@%p1 bra CONSUME;
	barrier.arrive first, 64;
	barrier.arrive second, 64;
	barrier.arrive third, 64;
	bra.uni MIDDLE;
CONSUME:
	barrier.sync first, 64;
	barrier.sync second, 64;
	barrier.sync third, 64;
MIDDLE:
	bar.sync 16;
	@%p1 bra CONSUME_MORE;
	barrier.arrive fourth, 64;
	barrier.arrive fifth, 64;
	ret;
CONSUME_MORE:
	barrier.sync fourth, 64;
	barrier.sync fifth, 64;
	ret;
}
`

// segmentsMost is the most segments that a page shows.
const segmentsMost = 100

// shownSegments are the first segments, by kernel, and how many there are of all kernels.
func shownSegments(kernels []models.BarrierKernel) (shown [][]models.BarrierSegment, all int) {
	for _, k := range kernels {
		if all < segmentsMost {
			shown = append(shown, k.Segments[:min(len(k.Segments), segmentsMost-all)])
		}
		all += len(k.Segments)
	}
	return shown, all
}

// lifetimeCell is a cell of a row of lifetimes: of a barrier, or free.
type lifetimeCell struct {
	Barrier *models.KernelBarrier
	Steps   int
}

// lifetimeRows are the cells of each physical barrier.
func lifetimeRows(s models.BarrierSegment, physical int) [][]lifetimeCell {
	rows := make([][]lifetimeCell, physical)
	for n := range rows {
		step := 0
		for i, b := range s.Barriers {
			if b.Physical != n {
				continue
			}
			if b.From > step {
				rows[n] = append(rows[n], lifetimeCell{nil, b.From - step})
			}
			rows[n] = append(rows[n], lifetimeCell{&s.Barriers[i], b.Until - b.From + 1})
			step = b.Until + 1
		}
		if step < s.Steps {
			rows[n] = append(rows[n], lifetimeCell{nil, s.Steps - step})
		}
	}
	return rows
}

// The graph of a segment: pixels between barriers, and how many are drawn.
const (
	graphStep, graphRow = 120, 34
	graphMost           = 64
)

// graphEdge is a line from a barrier to one that begins when it is over.
type graphEdge struct{ X1, Y1, X2, Y2 int }

func graphX(b models.KernelBarrier) int { return b.From*graphStep + 8 }
func graphY(b models.KernelBarrier) int { return b.Physical*graphRow + 4 }

// graphHeight leaves out the physical barriers that the segment does not use.
func graphHeight(s models.BarrierSegment) (height int) {
	for _, b := range s.Barriers {
		height = max(height, graphY(b)+graphRow)
	}
	return height
}

func graphEdges(s models.BarrierSegment) (edges []graphEdge) {
	for _, b := range s.Barriers {
		for _, name := range b.After {
			i := slices.IndexFunc(s.Barriers, func(o models.KernelBarrier) bool { return o.Name == name })
			from := s.Barriers[i]
			edges = append(edges, graphEdge{graphX(from) + 72, graphY(from) + 12, graphX(b), graphY(b) + 12})
		}
	}
	return edges
}

// uses are operations in words.
func uses(ctx context.Context, list []models.BarrierUse) []string {
	words := make([]string, len(list))
	for i, u := range list {
		words[i] = T(ctx, "line %d, %s", u.Line, u.Operation)
		if len(u.Warps) > 0 {
			words[i] = T(ctx, "line %d, %s, warps %s", u.Line, u.Operation, models.Ranges(u.Warps))
		}
	}
	return words
}

// count is a number of a table.
func count(n int) string { return number(int64(n)) }

func barrierNotes(ctx context.Context, b models.KernelBarrier) (notes []string) {
	if b.Reuses != "" {
		notes = append(notes, T(ctx, "Reuses the barrier of %s.", b.Reuses))
	}
	if b.Unknown {
		notes = append(notes, T(ctx, "Which warps take part is not known."))
	}
	if b.Assumed {
		notes = append(notes, T(ctx, "Arrivals in a loop or branch are assumed to be complete when it ends."))
	}
	if b.Pending {
		notes = append(notes, T(ctx, "Arrivals remain at the end, so its barrier is not reused in the segment."))
	}
	return notes
}

// barrierMethods say how many physical barriers a segment uses.
var barrierMethods = map[string]models.Text{
	"intervals": models.Say("The fewest possible: the lifetimes are intervals, and as many overlap."),
	"matching":  models.Say("The fewest possible: as many barriers overlap pairwise."),
	"first_fit": models.Say("At most one more than the barriers that overlap with one."),
}
