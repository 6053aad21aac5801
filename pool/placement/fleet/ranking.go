package fleet

import (
	"math"
	"math/bits"
)

// journal lists the nodes that changed, so that each ranking can catch up
// when it is next asked.
type journal struct {
	start   int     // number of the first entry still kept
	entries []int32 // nodes
	limit   int
	mark    []int // per node, the last catching-up that looked at it
	turn    int
}

func newJournal(nodes int) journal {
	// A ranking that slept longer than this begins anew, which costs it no
	// more than the entries would have.
	return journal{limit: 8*nodes + 64, mark: make([]int, nodes)}
}

func (j *journal) note(node int) {
	if len(j.entries) == j.limit {
		j.start += len(j.entries)
		j.entries = j.entries[:0]
	}
	j.entries = append(j.entries, int32(node))
}

func (j *journal) end() int { return j.start + len(j.entries) }

// unfit is the score of a node that cannot take the task.
const unfit = math.MinInt32

// standing is the best score among some neighbouring nodes, and how many of
// them have it.
type standing struct{ score, count int32 }

func (a standing) join(b standing) standing {
	switch {
	case a.score > b.score:
		return a
	case a.score < b.score:
		return b
	}
	return standing{a.score, a.count + b.count}
}

// tournament keeps the scores of some nodes in a tree: that of the i-th is at
// [leaves+i], and [i] joins [2i] and [2i+1].
type tournament []standing

func newTournament(nodes int) tournament {
	t := make(tournament, 2<<bits.Len(uint(max(nodes, 1)-1)))
	for i := range t {
		t[i].score = unfit
	}
	return t
}

func (t tournament) set(i int, score int32) {
	i += len(t) / 2
	s := standing{score, 1}
	for t[i] != s {
		t[i] = s
		if i /= 2; i == 0 {
			return
		}
		s = t[2*i].join(t[2*i+1])
	}
}

// top is the best score of all.
func (t tournament) top() standing { return t[1] }

// find is the number of a node with the best score, after skipping some.
func (t tournament) find(skip int32) int {
	i := 1
	for i < len(t)/2 {
		i *= 2
		if left := t[i]; left.score != t[1].score {
			i++
		} else if skip >= left.count {
			skip -= left.count
			i++
		}
	}
	return i - len(t)/2
}

// ranking keeps the scores of all nodes for one kind of task, the nodes of
// each model among themselves: what a model as a whole is worth to the task
// may change with every decision.
type ranking struct {
	need   need
	seen   int // entries of the journal, -1 before the first scoring
	models []tournament
}

func (f *Fleet) newRanking(n need) *ranking {
	r := &ranking{need: n, seen: -1, models: make([]tournament, len(f.models))}
	for model, nodes := range f.nodes {
		if n.allows(model) {
			r.models[model] = newTournament(len(nodes))
		}
	}
	return r
}

// update scores the nodes that changed since the ranking was last asked.
func (r *ranking) update(f *Fleet) {
	j := &f.journal
	if r.seen < j.start {
		for node := range f.machines {
			r.rescore(f, node)
		}
	} else {
		j.turn++
		for _, node := range j.entries[r.seen-j.start:] {
			if j.mark[node] != j.turn {
				j.mark[node] = j.turn
				r.rescore(f, int(node))
			}
		}
	}
	r.seen = j.end()
}

func (r *ranking) rescore(f *Fleet, node int) {
	m := &f.machines[node]
	if r.models[m.model] == nil {
		return
	}
	score := int32(unfit)
	if m.fits(&r.need) {
		score = f.policy.score(m, &r.need)
	}
	r.models[m.model].set(m.rank, score)
}

// best is the first of the nodes with the best score, or any of them where
// the policy draws lots.
func (r *ranking) best(f *Fleet) (node int, ok bool) {
	if f.policy.random != nil {
		return r.draw(f)
	}
	var premiums []float64
	if f.policy.premiums != nil {
		premiums = f.policy.premiums(&r.need)
	}
	best := math.Inf(-1)
	for model, t := range r.models {
		if t == nil || t.top().score == unfit {
			continue
		}
		score, first := float64(t.top().score), f.nodes[model][t.find(0)]
		if premiums != nil {
			score += premiums[model]
		}
		if score > best || score == best && first < node {
			best, node, ok = score, first, true
		}
	}
	return node, ok
}

// draw is any node that fits; a policy that draws lots scores all alike.
func (r *ranking) draw(f *Fleet) (node int, ok bool) {
	fitting := int32(0)
	for _, t := range r.models {
		if t != nil && t.top().score != unfit {
			fitting += t.top().count
		}
	}
	if fitting == 0 {
		return 0, false
	}
	lot := f.policy.random.Int31n(fitting)
	for model, t := range r.models {
		switch {
		case t == nil || t.top().score == unfit:
		case lot < t.top().count:
			return f.nodes[model][t.find(lot)], true
		default:
			lot -= t.top().count
		}
	}
	return 0, false
}
