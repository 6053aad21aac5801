package projects_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

const (
	writers = 64
	window  = 8   // projects that are worked on at the same time, each by as many writers
	turns   = 250 // moves in each project
)

// linearMoves is how many moves are made in all, on both databases together.
// WEIR_LEDGER asks for another number: make ledger makes 100,000.
func linearMoves(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("WEIR_LEDGER"), "20000"))
	if err != nil || n < 2*window*turns {
		t.Fatalf("WEIR_LEDGER: at least %d", 2*window*turns)
	}
	return n
}

// sequential is the ledger as one that does one thing after another: every
// history of many writers must be one of its histories. A move that is
// refused although it was admissible at every moment between its call and its
// answer has no place in any of them; neither has one that was done although
// it was admissible at none.
var sequential = porcupine.Model{
	Init: func() any { return model{} },
	Step: func(state, input, output any) (bool, any) {
		return state.(model).step(input.(move), output.(outcome))
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%v → %+v", input, output) },
}

// Sixty-four writers do everything at once that changes a quota, a promise or
// what is held; an observer looks at the rules all the while.
func TestLedgerIsLinearizable(t *testing.T) {
	total := linearMoves(t)
	each(t, func(t *testing.T, o *world) {
		f := &linearRun{busyWorld: newBusyWorld(t, o), history: map[int][]porcupine.Operation{}}
		f.run(t, total/2)
		f.check(t)
	})
}

// linearRun is a busyWorld in which many move at once.
type linearRun struct {
	*busyWorld
	clock atomic.Int64 // orders calls and answers
	next  atomic.Int64
	done  chan int // the number of a move that has just ended

	mu      sync.Mutex
	history map[int][]porcupine.Operation // by busyProject
	counts  map[string]int
}

func (f *linearRun) run(t *testing.T, total int) {
	t.Helper()
	f.counts, f.done = map[string]int{}, make(chan int, 1)
	f.busy = make([]*busyProject, total/(turns*window)*window)
	for i := range f.busy {
		f.busy[i] = f.open(t, fmt.Sprint("project ", i))
		f.history[i] = []porcupine.Operation{{Input: move{what: found, model: f.busy[i].model}, Output: outcome{}, Call: f.clock.Add(1), Return: f.clock.Add(1)}}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	actors := f.actors(t)
	var looked sync.WaitGroup
	looked.Go(func() { f.observe(t) })
	began := time.Now()
	storetest.Concurrently(writers, func(w int) {
		r := rand.New(rand.NewPCG(seed, uint64(w)))
		for !t.Failed() {
			n := int(f.next.Add(1)) - 1
			if n >= len(f.busy)*turns {
				return
			}
			f.turn(t, r, w, actors[w], n)
		}
	})
	t.Logf("%d moves in %d projects by %d writers, %.0f a second", len(f.busy)*turns, len(f.busy), writers,
		float64(len(f.busy)*turns)/time.Since(began).Seconds())
	close(f.done)
	looked.Wait()
}

// turn makes move n of all, in the writer's one of the projects whose turn it
// is. A bounded number of writers in each keeps the check feasible: moves that
// do not matter to each other may be in any order.
func (f *linearRun) turn(t *testing.T, r *rand.Rand, writer int, actor policies.Actor, n int) {
	at := n/(window*turns)*window + writer%window
	s := f.busy[at]
	v := s.propose(r)
	v.project = at
	op := porcupine.Operation{ClientId: writer, Input: v, Call: f.clock.Add(1)}
	got, err := f.do(actor, s, v)
	op.Return = f.clock.Add(1)
	if err != nil {
		t.Errorf("%v: %v", v, err)
		return
	}
	s.learn(v, got)
	op.Output = got
	f.mu.Lock()
	f.history[at] = append(f.history[at], op)
	f.counts[fmt.Sprintf("%-13s %s", v.what, cmp.Or(string(got.refused), "done"))]++
	f.mu.Unlock()
	if n%25 == 0 {
		select {
		case f.done <- n:
		default: // it is looking
		}
	}
}

// actors are administrators, each writer another one.
func (f *linearRun) actors(t *testing.T) (list [writers]policies.Actor) {
	t.Helper()
	for i := range list {
		list[i] = policies.Actor{User: storetest.User(t, f.Store, fmt.Sprintf("writer%d@example.org", i), true)}
	}
	return list
}

// observe looks at the projects that are being worked on, each time in one
// snapshot of the database, until the last move is done.
func (f *linearRun) observe(t *testing.T) {
	looks := 0
	for n := range f.done {
		first := n / (window * turns) * window
		for _, s := range f.busy[first : first+window] {
			looks++
			if err := f.Store.Snapshot(f.Ctx, func(q *store.Queries) error { return brokenRules(q, s.id) }); err != nil {
				t.Errorf("in project %d: %v", s.id, err)
			}
		}
	}
	t.Logf("the rules in use in all of %d snapshots", looks)
	if looks < len(f.busy) {
		t.Errorf("only %d snapshots of %d projects", looks, len(f.busy))
	}
}

// brokenRules adds a project up by hand, from its rows, and says which of rules 1
// and 2 does not hold.
func brokenRules(q *store.Queries, project int64) error {
	p, err1 := q.Project(store.AllProjects, project)
	members, err2 := q.Members(store.AllProjects, project, store.Page{Limit: store.PageSize})
	inUse, err3 := q.InUseByMembers(project)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	var allocated, all models.Resources
	var problems []error
	for _, h := range inUse { // also by those who were removed
		all = all.Add(h)
	}
	for _, m := range members {
		allocated = allocated.Add(m.Limit)
		if over := inUse[m.ID].Exceeding(m.Limit); len(over) > 0 {
			problems = append(problems, fmt.Errorf("rule 2: %s holds too much: %+v", m.UserEmail, over))
		}
	}
	if over := allocated.Exceeding(p.Quota); len(over) > 0 {
		problems = append(problems, fmt.Errorf("rule 1: too much is allocated: %+v", over))
	}
	if over := all.Exceeding(p.Quota); len(over) > 0 {
		problems = append(problems, fmt.Errorf("rule 2: the project holds too much: %+v", over))
	}
	return errors.Join(problems...)
}

// check looks for an order of the moves of each project in which the model
// gives the same answers.
func (f *linearRun) check(t *testing.T) {
	t.Helper()
	if t.Failed() {
		return // a move without an answer has no history
	}
	f.isVaried(t)
	began := time.Now()
	for i, s := range f.busy {
		history := f.history[i]
		result, info := porcupine.CheckOperationsVerbose(sequential, history, time.Minute)
		if result != porcupine.Ok {
			t.Fatalf("project %d: %s: %s", s.id, result, stuck(history, info))
		}
		f.CheckRules(t, s.id)
	}
	t.Logf("checked in %v", time.Since(began).Round(time.Millisecond))
}

// stuck shows how far the longest order gets and what has no place in it.
func stuck(history []porcupine.Operation, info porcupine.LinearizationInfo) string {
	var longest []porcupine.Operation
	for _, partial := range info.PartialLinearizationsOperations()[0] {
		if len(partial) > len(longest) {
			longest = partial
		}
	}
	state := model{}
	placed := map[int64]bool{}
	for _, op := range longest {
		_, state = state.step(op.Input.(move), op.Output.(outcome))
		placed[op.Call] = true
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d of %d moves have a place; then the model is\n%+v\nand none of these fits:", len(longest), len(history), state)
	rest := slices.DeleteFunc(slices.Clone(history), func(op porcupine.Operation) bool { return placed[op.Call] })
	slices.SortFunc(rest, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for _, op := range rest[:min(len(rest), 12)] {
		fmt.Fprintf(&text, "\n[%d, %d] %v → %+v", op.Call, op.Return, op.Input, op.Output)
	}
	return text.String()
}

// isVaried holds the test itself against what it is for: every move was both
// made and refused, as far as it can be.
func (f *linearRun) isVaried(t *testing.T) {
	t.Helper()
	for _, what := range []string{createRole, updateRole, addMember, updateMember, setQuota, launch} {
		for _, how := range []string{"done", string(models.KindNoCapacity)} {
			if f.counts[fmt.Sprintf("%-13s %s", what, how)] == 0 {
				t.Errorf("%s: never %s", what, how)
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(f.counts)) {
		t.Logf("%6d × %s", f.counts[k], k)
	}
}

// drawn lets rapid decide.
type drawn struct{ *rapid.T }

// IntN draws a number below n.
func (d drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "choice") }

// One move after another ends exactly as the model says, and leaves the rows
// that it says.
func TestLedgerIsItsModel(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := newBusyWorld(t, o)
		runs := 0
		rapid.Check(t, func(rt *rapid.T) {
			if runs++; runs > 15 { // as many as there is time for
				return
			}
			s := m.open(t, fmt.Sprint("project ", runs))
			b := s.model
			for range 120 {
				v := s.propose(drawn{rt})
				got, err := m.do(m.Root, s, v)
				if err != nil {
					rt.Fatalf("%v: %v", v, err)
				}
				ok, after := b.step(v, got)
				if !ok {
					_, done, refusals := b.judge(v, got)
					rt.Fatalf("%v ended as %+v\nin %+v\nthe model says %+v, or refused %+v", v, got, b, done, refusals)
				}
				b = after
				s.learn(v, got)
			}
			m.CheckRules(rt, s.id)
		})
	})
}
