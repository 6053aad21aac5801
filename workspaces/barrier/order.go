package barrier

import (
	"context"
	"slices"

	"weir/models"
)

// maxRounds bounds the rounds of each analysis. What warps know only grows with the rounds,
// so that fewer rounds find less; the other analyses assume the worst when they are not done.
const maxRounds = 64

// state is what a warp knows at a node: by class, the barriers that all warps of the class
// have used for the last time, or never will.
type state []bitset

// event is an operation of a class, or a branch.
type event struct{ class, node int }

// hub is one phase of a barrier, in which what its participants know meets; phase -1 is
// all phases of a barrier whose phases are not known.
type hub struct{ barrier, phase int }

// analysis finds what warps know in a segment.
type analysis struct {
	*segment
	events []event         // in the order in which they are evaluated
	in     map[event]state // before the operation
	out    map[event]state // after it
	sites  map[hub][]event // operations by phase
	round  int
	metAt  map[hub]int         // the round in which met was computed
	absent map[hub]int         // operations that have not been evaluated
	met    map[hub]state       // what the participants know who have arrived
	later  map[event]bitset    // barriers that the class can use after it
	users  []bitset            // barriers by class
	ended  map[event][2]bitset // before and after an event: barriers in loops whose last phase the warp has waited for
	size   int                 // of a set, in barriers
}

// order finds which barriers of the segment are over before each of them begins, unless the
// context ends before.
func (s *segment) order(ctx context.Context) error {
	a := &analysis{segment: s, in: map[event]state{}, out: map[event]state{}, sites: map[hub][]event{}, met: map[hub]state{},
		metAt: map[hub]int{}, absent: map[hub]int{}, later: map[event]bitset{}, ended: map[event][2]bitset{}, size: len(s.barriers)}
	if s.tooLarge() {
		return refuse(s.lines()[0], models.Say(
			"segment %d is too large: %d barriers and %d operations and branches take %d MiB, more than %d; "+
				"a barrier that all threads pass divides it",
			s.number+1, a.size, s.size(), (s.cost()+1<<17-1)>>17, maxWords>>17))
	}
	for c := range s.classes {
		a.findLater(c)
		a.findEnded(c)
	}
	again := a.schedule()
	for a.round = 1; again && a.round < maxRounds; a.round++ {
		if again = false; ctx.Err() != nil {
			return ctx.Err()
		}
		for _, e := range a.events {
			again = a.evaluate(e) || again
		}
	}
	a.conclude()
	return nil
}

// hubOf is the phase that an operation belongs to.
func (a *analysis) hubOf(e event) hub {
	b := a.barrierOf(e.node)
	if !b.counted() {
		return hub{b.index, -1}
	}
	return hub{b.index, b.phase[[2]int{e.class, e.node}]}
}

// findLater finds what can be used after each event, and collects the operations of each
// phase.
func (a *analysis) findLater(class int) {
	c := a.classes[class]
	changed := true
	for round := 0; changed; round++ {
		changed = false
		for _, n := range slices.Backward(a.parts[class]) {
			set := newBitset(a.size)
			if round == maxRounds {
				set.fill()
			}
			for _, to := range c.edges[n] {
				if !a.inside(class, to) {
					continue
				}
				if after := a.later[event{class, to}]; after != nil {
					set.union(after)
				}
				if a.nodes[to].op >= 0 {
					set.set(a.barrierOf(to).index)
				}
			}
			if before := a.later[event{class, n}]; before == nil || !set.subset(before) {
				a.later[event{class, n}], changed = set, round < maxRounds
			}
		}
	}
	for _, n := range a.parts[class] {
		if a.nodes[n].op >= 0 {
			e := event{class, n}
			a.sites[a.hubOf(e)] = append(a.sites[a.hubOf(e)], e)
			a.absent[a.hubOf(e)]++
		}
	}
}

// done are the barriers that a warp does not use after an event.
func (a *analysis) done(e event) bitset {
	s := newBitset(a.size)
	s.fill()
	return s.without(a.later[e])
}

// findEnded finds where a warp has waited for the last phase of barriers whose phases are
// not known: it has waited for them after all its arrivals, by every way, and does not use
// them again. As all participants take part in all phases, that is the last one of all.
func (a *analysis) findEnded(class int) {
	c, eligible := a.classes[class], newBitset(a.size)
	users := newBitset(a.size)
	for _, b := range a.barriers {
		if b.users[class] {
			users.set(b.index)
			if b.exact && !b.counted() {
				eligible.set(b.index)
			}
		}
	}
	a.users = append(a.users, users)
	in, out := map[int]bitset{}, map[int]bitset{}
	changed := true
	for round := 0; changed; round++ {
		changed = false
		if round == maxRounds {
			eligible = newBitset(a.size)
		}
		for _, n := range a.parts[class] {
			set := slices.Clone(eligible)
			for _, p := range c.all[n] {
				if known := out[p]; known != nil {
					set.intersect(known)
				} else if !a.inside(class, p) {
					set = newBitset(a.size)
				}
			}
			if n == 0 {
				set = newBitset(a.size)
			}
			in[n] = set
			after := slices.Clone(set)
			if a.nodes[n].op >= 0 {
				b := a.barrierOf(n)
				if after.clear(b.index); a.operation(n).kind != arrives && eligible.contains(b.index) {
					after.set(b.index)
				}
			}
			if before := out[n]; before == nil || !before.subset(after) {
				out[n], changed = after, round < maxRounds
			}
		}
	}
	for _, n := range a.parts[class] {
		e := event{class, n}
		before := in[n].without(a.later[e])
		if a.nodes[n].op >= 0 {
			before.clear(a.barrierOf(n).index)
		}
		a.ended[e] = [2]bitset{before, out[n].without(a.later[e])}
	}
}

// end adds the ends of barriers in loops to what a warp knows.
func (a *analysis) end(s state, ended bitset) {
	for class, users := range a.users {
		for i := range ended {
			s[class][i] |= users[i] & ended[i]
		}
	}
}

// schedule evaluates each event once, as a run of the kernel would: an operation that waits
// after all operations of its phase. It reports whether some had to be evaluated earlier,
// so that another round is needed.
func (a *analysis) schedule() bool {
	r := &run{analysis: a, missing: map[event]int{}, waiting: map[hub][]event{}}
	for i, part := range a.parts {
		for _, n := range part {
			e := event{i, n}
			for _, p := range a.classes[i].before[n] {
				if a.inside(i, p) {
					r.missing[e]++
				}
			}
			if r.missing[e] == 0 {
				r.ready = append(r.ready, e)
			}
		}
	}
	again := false
	for len(r.ready) > 0 || len(r.held) > 0 {
		if len(r.ready) == 0 { // what is missing comes in a later round of a loop, or never
			again = true
			r.release(r.held[0])
			continue
		}
		e := r.ready[0]
		r.ready = r.ready[1:]
		r.take(e)
	}
	return again
}

// run is a run of a segment, in which each event takes place once.
type run struct {
	*analysis
	ready   []event
	missing map[event]int // predecessors that have not taken place
	waiting map[hub][]event
	held    []hub // for which events wait, the oldest first
}

// take lets an event arrive, and take place if it does not wait.
func (r *run) take(e event) {
	if r.nodes[e.node].op < 0 {
		r.finish(e)
		return
	}
	h := r.hubOf(e)
	r.in[e] = r.before(e)
	r.absent[h]--
	if r.operation(e.node).kind == arrives {
		r.finish(e)
	} else {
		if r.waiting[h] == nil {
			r.held = append(r.held, h)
		}
		r.waiting[h] = append(r.waiting[h], e)
	}
	if r.absent[h] == 0 {
		r.release(h)
	}
}

// release lets the events take place that wait for a phase.
func (r *run) release(h hub) {
	list := r.waiting[h]
	delete(r.waiting, h)
	r.held = slices.DeleteFunc(r.held, func(o hub) bool { return o == h })
	for _, e := range list {
		r.finish(e)
	}
}

// finish evaluates an event, and makes those ready that follow it.
func (r *run) finish(e event) {
	r.evaluate(e)
	r.events = append(r.events, e)
	c := r.classes[e.class]
	for _, to := range c.edges[e.node] {
		next := event{e.class, to}
		if r.inside(e.class, to) && slices.Contains(c.before[to], e.node) {
			if r.missing[next]--; r.missing[next] == 0 {
				r.ready = append(r.ready, next)
			}
		}
	}
}

func (a *analysis) newState() state {
	s, words := make(state, len(a.classes)), len(newBitset(a.size))
	all := make(bitset, words*len(s))
	for i := range s {
		s[i] = all[i*words : (i+1)*words]
	}
	return s
}

// before is what a warp knows before an event: what it knows by all ways to it and, if it is
// the only one of its class, what it will not do.
func (a *analysis) before(e event) state {
	s := a.common(e)
	if c := a.classes[e.class]; len(c.warps) == 1 {
		done := a.done(e)
		if a.nodes[e.node].op >= 0 {
			done.clear(a.barrierOf(e.node).index)
		}
		s[e.class].union(done)
	}
	a.end(s, a.ended[e][0])
	return s
}

// common is what a warp knows by all ways to an event.
func (a *analysis) common(e event) state {
	c := a.classes[e.class]
	if len(c.before[e.node]) == 0 || c.blank[e.node] {
		return a.newState()
	}
	s := a.newState()
	for i := range s {
		s[i].fill()
	}
	for _, p := range c.before[e.node] {
		known, ok := a.out[event{e.class, p}]
		if !ok {
			return a.newState()
		}
		for i := range s {
			s[i].intersect(known[i])
		}
	}
	return s
}

// meet computes what every participant of a phase knows when it completes: of each class
// what all of its operations contribute, and of the classes what any does. Without an exact
// count it is not known who takes part, and only what all contribute is certain.
func (a *analysis) meet(h hub) {
	b := a.barriers[h.barrier]
	byClass := map[int]state{}
	for _, e := range a.sites[h] {
		s, key := a.newState(), 0
		for i, known := range a.in[e] {
			s[i].union(known)
		}
		if b.exact {
			key = e.class
			s[key].union(a.done(e))
		}
		if all := byClass[key]; all != nil {
			for i := range all {
				all[i].intersect(s[i])
			}
		} else {
			byClass[key] = s
		}
	}
	met := a.newState()
	for _, s := range byClass {
		for i := range met {
			met[i].union(s[i])
		}
	}
	a.met[h] = met
}

// evaluate computes what is known after an event, and reports whether that is more than
// before.
func (a *analysis) evaluate(e event) bool {
	in, out := a.before(e), a.newState()
	changed := a.in[e] == nil || !in.within(a.in[e])
	a.in[e] = in
	for i := range out {
		out[i].union(in[i])
	}
	if len(a.classes[e.class].warps) == 1 {
		out[e.class].union(a.done(e))
	}
	if a.nodes[e.node].op >= 0 {
		a.learn(e, out)
	}
	a.end(out, a.ended[e][1])
	before := a.out[e]
	a.out[e] = out
	return changed || before == nil || !out.within(before)
}

// within reports whether another state knows all that s does.
func (s state) within(o state) bool {
	for i := range s {
		if !s[i].subset(o[i]) {
			return false
		}
	}
	return true
}

// learn adds what a warp knows when the barrier at which it waits completes.
func (a *analysis) learn(e event, out state) {
	h := a.hubOf(e)
	if a.operation(e.node).kind == arrives || a.absent[h] > 0 {
		return
	}
	if a.met[h] == nil || a.metAt[h] != a.round {
		a.meet(h)
		a.metAt[h] = a.round
	}
	for i, known := range a.met[h] {
		out[i].union(known)
	}
}

// conclude finds the barriers that are over at every operation of each barrier. One that
// leaves arrivals behind is never over.
func (a *analysis) conclude() {
	never := newBitset(a.size)
	for _, b := range a.barriers {
		b.over = newBitset(a.size)
		b.over.fill()
		if b.remaining() == remain {
			never.set(b.index)
		}
	}
	for _, list := range a.sites {
		for _, e := range list {
			b := a.barrierOf(e.node)
			for i, users := range a.users {
				for w, known := range a.in[e][i] {
					b.over[w] &^= never[w] | users[w]&^known
				}
			}
		}
	}
	for _, b := range a.barriers {
		for i := a.size; i < 64*len(b.over); i++ {
			b.over.clear(i)
		}
		b.over.clear(b.index)
	}
}
