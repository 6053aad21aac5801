package barrier

import (
	"cmp"
	"slices"

	"weir/models"
)

// report describes how a segment's barriers were allocated.
func (s *segment) report(a assignment, numbers []int) models.BarrierSegment {
	lines := s.lines()
	r := models.BarrierSegment{Number: s.number + 1, From: lines[0], Until: lines[1], Method: string(a.method), Used: a.used,
		Overlap: s.namesOf(a.overlap)}
	if s.strong != nil {
		r.Strong = s.strong.barrier
	}
	for i, b := range s.barriers {
		span := a.spans[i]
		r.Steps = max(r.Steps, span.Until+1)
		one := models.KernelBarrier{Name: b.name, Physical: numbers[i], Threads: b.threads, From: span.From, Until: span.Until,
			Producers: []models.BarrierUse{}, Consumers: []models.BarrierUse{},
			After: s.namesOf(a.covers(i)), Unknown: !b.exact, Assumed: b.signals && !b.counted(), Pending: b.remaining() == remain}
		for _, n := range b.nodes {
			if use := s.use(n); use.Operation == arrives.String() {
				one.Producers = append(one.Producers, use)
			} else {
				one.Consumers = append(one.Consumers, use)
			}
		}
		r.Barriers = append(r.Barriers, one)
	}
	slices.SortStableFunc(r.Barriers, func(a, b models.KernelBarrier) int { return cmp.Compare(a.From, b.From) })
	last := map[int]string{}
	for i := range r.Barriers {
		b := &r.Barriers[i]
		b.Reuses, last[b.Physical] = last[b.Physical], b.Name
	}
	return r
}

// use describes one operation.
func (s *segment) use(n int) models.BarrierUse {
	op := s.operation(n)
	use := models.BarrierUse{Line: op.line, Operation: op.kind.String(), Warps: []int{}}
	for _, c := range s.classes {
		if c.rank[n] >= 0 {
			use.Warps = append(use.Warps, c.warps...)
		}
	}
	slices.Sort(use.Warps)
	return use
}

// covers are the barriers that are over before a barrier, without those that are over
// before another one of them.
func (a *assignment) covers(b int) []int {
	direct := slices.Clone(a.before[b])
	for _, m := range a.before[b].members() {
		direct = direct.without(a.before[m])
	}
	return direct.members()
}
