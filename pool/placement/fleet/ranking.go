package fleet

import (
	"math"
	"math/bits"
	"math/rand/v2"
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

// ranking keeps the scores of all nodes for one kind of task in a tournament
// tree: a node's score is at tree[leaves+node], and tree[i] joins tree[2i]
// and tree[2i+1].
type ranking struct {
	need   need
	seen   int // entries of the journal, -1 before the first scoring
	leaves int
	tree   []standing
}

func newRanking(n need, nodes int) *ranking {
	leaves := 1 << bits.Len(uint(max(nodes, 1)-1))
	return &ranking{need: n, seen: -1, leaves: leaves, tree: make([]standing, 2*leaves)}
}

// update scores the nodes that changed since the ranking was last asked.
func (r *ranking) update(f *Fleet) {
	j := &f.journal
	if r.seen < j.start {
		r.build(f)
	} else {
		j.turn++
		for _, node := range j.entries[r.seen-j.start:] {
			if j.mark[node] != j.turn {
				j.mark[node] = j.turn
				r.set(int(node), r.score(f, int(node)))
			}
		}
	}
	r.seen = j.end()
}

func (r *ranking) score(f *Fleet, node int) int32 {
	if m := &f.machines[node]; m.fits(&r.need) {
		return f.policy.score(m, &r.need)
	}
	return unfit
}

func (r *ranking) build(f *Fleet) {
	for i := range r.leaves {
		s := standing{unfit, 0}
		if i < len(f.machines) {
			s = standing{r.score(f, i), 1}
		}
		r.tree[r.leaves+i] = s
	}
	for i := r.leaves - 1; i > 0; i-- {
		r.tree[i] = r.tree[2*i].join(r.tree[2*i+1])
	}
}

func (r *ranking) set(node int, score int32) {
	i := r.leaves + node
	s := standing{score, 1}
	for r.tree[i] != s {
		r.tree[i] = s
		if i /= 2; i == 0 {
			return
		}
		s = r.tree[2*i].join(r.tree[2*i+1])
	}
}

// best is a node with the best score: the first, or any of them if there is
// something to draw lots from.
func (r *ranking) best(random *rand.Rand) (int, bool) {
	top := r.tree[1]
	if top.score == unfit {
		return 0, false
	}
	skip := int32(0)
	if random != nil {
		skip = random.Int32N(top.count)
	}
	i := 1
	for i < r.leaves {
		i *= 2
		if left := r.tree[i]; left.score != top.score {
			i++
		} else if skip >= left.count {
			skip -= left.count
			i++
		}
	}
	return i - r.leaves, true
}
