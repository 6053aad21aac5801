package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"weir/models"
	"weir/workspaces/graph"
	"weir/workspaces/graph/journal"
)

// Config is a graph and how it is run.
type Config struct {
	Graph    graph.Graph
	CPUs     int            // how many of the machine's to use; 0: all
	First    int            // place of the CPU that is taken before others of equal load, so that graphs begin with different ones
	Settings graph.Settings // Utilization is measured, unless Fixed
	Fixed    bool           // plans with Settings.Utilization, and does not revise
	// Sample measures the machine, given the CPU time of the graph's processes so far; see
	// [Meter.Sample].
	Sample  func(own time.Duration) ([]graph.CPU, float64, error)
	Start   func(Operation) (Process, error) // nil: as processes of this machine
	Ticks   <-chan time.Time                 // when to measure
	Signals <-chan os.Signal                 // forwarded to the operators; no further ones start
	// Ended is how many operators of each branch have succeeded in earlier attempts: they do not
	// run again, and the plan is of the others.
	Ended map[string]int
	// Record keeps what happens before anything else does. The operators are stopped if it fails.
	Record  func(journal.Event) error
	Attempt string           // marks the processes of the operators; see [EndLeftovers]
	Now     func() time.Time // the clock
	Out     io.Writer        // output of the operators, with the name of the branch before each line
	Errors  io.Writer        // the same for what they write to standard error
	Notes   func(string)     // told of plans, starts and ends, in English
}

// Result is how a graph was run.
type Result struct {
	Code      int             // 0, or the exit code of the first operator that failed
	Failed    string          // which one that is, or the signal that ended the run; empty if all succeeded
	Times     graph.Times     // measured
	Operators []journal.Event // the ends of all attempts to run one
	Revisions int             // of the plan
}

// Run runs a graph until all its branches have ended or cannot start any more.
func Run(ctx context.Context, c Config) (Result, error) {
	runtime.LockOSThread() // for launch: of affinity, and of the signal at the end of the thread
	defer runtime.UnlockOSThread()
	r := runner{Config: c, out: &output{to: c.Out}, errs: &output{to: c.Errors}, ended: make(chan ending), branches: map[string]*branch{}}
	r.result.Times = graph.Times{}
	if err := r.Graph.Check(); err != nil {
		return r.result, err
	}
	for _, b := range r.Graph.Branches {
		for _, o := range b.Operators {
			if len(o.Command) == 0 || o.Command[0] == "" {
				return r.result, models.Invalid("graph", "branch %s, operator %s: %s", b.Name, o.Name, models.Say("the command is required"))
			}
		}
		r.branches[b.Name] = &branch{Branch: b, next: min(r.Ended[b.Name], len(b.Operators))}
	}
	if err := r.measure(); err != nil {
		return r.result, err
	}
	if err := r.begin(); err != nil {
		return r.result, err
	}
	r.Notes(r.plan.Reason)
	r.loop(ctx)
	if r.interrupted != 0 && r.result.Code == 0 {
		r.result.Code, r.result.Failed = 128+int(r.interrupted), r.interrupted.String()
	}
	r.record(journal.Event{Kind: journal.Over, Code: r.result.Code, Failed: r.result.Failed})
	return r.result, r.unrecorded
}

// begin plans what earlier attempts have left, and records the attempt.
func (r *runner) begin() (err error) {
	rest := r.Graph.Remaining(r.Ended)
	over := len(rest.Branches) == 0
	if over {
		rest = r.Graph
	}
	if r.plan, err = graph.Plan(rest, r.machine, r.Settings); err != nil {
		return err
	}
	if over {
		r.plan.Stages = nil
	}
	r.shown = r.plan.Utilization
	return r.Record(journal.Begin(r.Graph, r.Attempt, r.Now(), r.plan))
}

// record keeps an event. If it cannot, the operators are stopped: what is not kept would run
// again.
func (r *runner) record(e journal.Event) {
	if e.At = r.Now(); r.unrecorded != nil {
		return
	}
	if r.unrecorded = r.Record(e); r.unrecorded != nil {
		r.Notes("the journal cannot be written: " + r.unrecorded.Error())
		r.forward(syscall.SIGTERM)
	}
}

// runner is a graph that is being run. One goroutine uses it.
type runner struct {
	Config
	plan        models.GraphPlan
	machine     []graph.CPU // as it was measured for the last time
	shown       float64     // utilization in percent that was recorded last
	ran         []int       // CPUs of operators that have ended since
	branches    map[string]*branch
	out, errs   *output
	ended       chan ending
	used        time.Duration // CPU time of operators that have ended
	interrupted syscall.Signal
	unrecorded  error // why the journal cannot be written
	result      Result
}

// branch is the state of a branch.
type branch struct {
	graph.Branch
	next    int // operator to start; those before have ended or run
	retries int // of it so far
	running Process
	cpus    []int // of what runs or, if it has begun, of all that it runs
	begun   bool  // by the present plan
	failed  bool  // it or one that it waits for
}

// ending is the end of an operator.
type ending struct {
	*branch
	End
}

// over reports whether nothing of a branch runs or will.
func (b *branch) over() bool { return b.running == nil && (b.failed || b.next == len(b.Operators)) }

// loop starts operators and handles what happens until none runs and none may start.
func (r *runner) loop(ctx context.Context) {
	done := ctx.Done()
	for {
		r.startAll()
		if len(r.running()) == 0 {
			return
		}
		select {
		case e := <-r.ended:
			r.settle(e)
		case <-r.Ticks:
			if r.interrupted != 0 {
				break
			}
			if err := r.revise(); err != nil {
				r.Notes("the plan stays as it is: " + err.Error())
			}
		case s := <-r.Signals:
			r.forward(s.(syscall.Signal))
		case <-done:
			done = nil
			r.forward(syscall.SIGTERM)
		}
	}
}

// running are the branches of which an operator runs.
func (r *runner) running() (list []*branch) {
	for _, b := range r.Graph.Branches {
		if one := r.branches[b.Name]; one.running != nil {
			list = append(list, one)
		}
	}
	return list
}

// startAll starts what may start: the next operators of branches that have begun, and in the order
// of the plan those for which there are CPUs.
func (r *runner) startAll() {
	for again := true; again; { // what cannot start makes room for others
		var waiting, begin []models.GraphShare
		for _, stage := range r.plan.Stages {
			for _, share := range stage.Shares {
				if b := r.branches[share.Branch]; b.begun {
					r.continues(b, b.cpus)
				} else {
					waiting = append(waiting, share)
				}
			}
		}
		held := r.held()
		free := r.plan.Budget - len(held)
		for _, share := range waiting {
			if !r.mayStart(r.branches[share.Branch]) {
				continue
			}
			if free -= len(share.CPUs); free < 0 {
				break
			}
			begin = append(begin, share)
		}
		others := slices.DeleteFunc(slices.Clone(r.machine), func(c graph.CPU) bool { return slices.Contains(held, c.ID) })
		for _, share := range graph.Place(begin, others) {
			b := r.branches[share.Branch]
			b.begun = true
			r.continues(b, share.CPUs)
		}
		again = len(begin) > 0
	}
}

// continues starts the next operator of a branch, or that after it if it cannot start.
func (r *runner) continues(b *branch, cpus []int) {
	for r.mayStart(b) {
		r.start(b, cpus)
	}
}

// held are the CPUs of branches that have begun and are not over.
func (r *runner) held() (ids []int) {
	for _, b := range r.branches {
		if b.running != nil || b.begun && !b.over() {
			ids = append(ids, b.cpus...)
		}
	}
	return ids
}

// mayStart reports whether the next operator of a branch may start. A branch fails with those
// that it waits for.
func (r *runner) mayStart(b *branch) bool {
	if b.over() || b.running != nil {
		return false
	}
	if r.interrupted != 0 {
		b.failed = true
		return false
	}
	for _, name := range b.After {
		before := r.branches[name]
		if before.failed {
			b.failed = true
			r.Notes(fmt.Sprintf("%s does not start, because %s has failed", b.Name, name))
		}
		if !before.over() || before.failed {
			return false
		}
	}
	return true
}

// start starts the next operator of a branch; one that cannot start has failed.
func (r *runner) start(b *branch, cpus []int) {
	o, prefix := b.Operators[b.next], b.Name+" | "
	b.next++
	if r.record(journal.Event{Kind: journal.Start, Branch: b.Name, Operator: o.Name, CPUs: cpus}); r.interrupted != 0 {
		b.failed = true
		return
	}
	start, where, out, errs := launch, "CPUs "+models.Ranges(cpus), r.out.of(prefix), r.errs.of(prefix)
	if r.Start != nil {
		start, where = r.Start, counted(len(cpus))
	}
	p, err := start(Operation{b.Name, o.Name, o.Command, r.Attempt, cpus, o.Seconds, out, errs})
	if err != nil {
		r.end(b, cpus, End{Code: startCode(err), Problem: err.Error()})
		return
	}
	r.Notes(fmt.Sprintf("%s/%s starts on %s", b.Name, o.Name, where))
	b.running, b.cpus = p, cpus
	go func() {
		e := p.Wait()
		out.flush()
		errs.flush()
		r.ended <- ending{b, e}
	}()
}

// counted counts CPUs that have no numbers.
func counted(cpus int) string {
	if cpus == 1 {
		return "1 CPU"
	}
	return fmt.Sprintf("%d CPUs", cpus)
}

// startCode is the exit code that a shell has for a command that cannot start.
func startCode(err error) int {
	if errors.Is(err, os.ErrPermission) {
		return 126
	}
	return 127
}

// settle records the end of an operator that ran.
func (r *runner) settle(e ending) {
	e.running = nil
	r.used += e.Used
	r.ran = append(r.ran, e.cpus...)
	r.end(e.branch, e.cpus, e.End)
}

// end decides what follows from the end of an operator.
func (r *runner) end(b *branch, cpus []int, e End) {
	o := b.Operators[b.next-1]
	ended := journal.Event{Kind: journal.End, Branch: b.Name, Operator: o.Name, CPUs: cpus, Seconds: e.Seconds, Code: e.Code}
	r.result.Operators = append(r.result.Operators, ended)
	r.record(ended)
	if e.Code == 0 {
		r.Notes(fmt.Sprintf("%s/%s has ended: %.2f s on one CPU", b.Name, o.Name, e.Seconds))
		if r.result.Times[b.Name] == nil {
			r.result.Times[b.Name] = map[string]float64{}
		}
		r.result.Times[b.Name][o.Name], b.retries = e.Seconds, 0
		return
	}
	why := fmt.Sprintf("%s/%s has failed with exit code %d", b.Name, o.Name, e.Code)
	if e.Problem != "" {
		why += ": " + e.Problem
	}
	if b.retries < o.Retries && r.interrupted == 0 && !e.Lost {
		b.retries, b.next = b.retries+1, b.next-1
		r.Notes(fmt.Sprintf("%s; retry %d of %d", why, b.retries, o.Retries))
		return
	}
	b.failed = true
	r.Notes(why)
	if r.result.Code == 0 {
		r.result.Code, r.result.Failed = e.Code, b.Name+"/"+o.Name
	}
}

// forward passes a signal on to all operators; no further ones start.
func (r *runner) forward(s syscall.Signal) {
	r.interrupted = s
	for _, b := range r.running() {
		b.running.Signal(s)
	}
}

// measure measures the machine: the CPUs to use, of which the least loaded are taken, and its
// utilization.
func (r *runner) measure() error {
	var groups []int
	pinned := slices.Clone(r.ran)
	for _, b := range r.running() {
		if p, is := b.running.(*process); is {
			groups = append(groups, p.cmd.Process.Pid)
		}
		pinned = append(pinned, b.cpus...)
	}
	machine, utilization, err := r.Sample(r.used + groupTime(groups))
	if err != nil {
		return err
	}
	if r.ran = nil; !r.Fixed {
		r.Settings.Utilization = utilization
	}
	first := r.First % max(1, len(machine))
	machine = slices.Concat(machine[first:], machine[:first])
	for i := range machine {
		if slices.Contains(pinned, machine[i].ID) {
			machine[i].Load = utilization // its load is that of an operator
		}
	}
	if r.CPUs > len(machine) {
		return models.Invalid("cpus", "must be from %d to %d", 1, len(machine))
	}
	if r.CPUs > 0 {
		machine = graph.LeastLoaded(machine, r.CPUs)
	}
	r.machine = machine
	return nil
}

// revise measures the machine, and plans what remains anew if utilization has crossed a
// threshold.
func (r *runner) revise() error {
	if r.Fixed && r.Start != nil {
		return nil // there is nothing to measure
	}
	if err := r.measure(); err != nil || r.Fixed {
		return err
	}
	if now := math.Round(1000*r.Settings.Utilization) / 10; math.Abs(now-r.shown) >= 1 {
		r.shown = now
		r.record(journal.Event{Kind: journal.Sample, Utilization: now})
	}
	ended := map[string]int{}
	for name, b := range r.branches {
		switch ended[name] = b.next; {
		case b.failed:
			ended[name] = len(b.Operators)
		case b.running != nil:
			ended[name]--
		}
	}
	plan, changed, err := graph.Revise(r.plan, r.Graph, ended, r.machine, r.Settings)
	if err != nil || !changed {
		return err
	}
	r.plan = plan
	for _, b := range r.branches {
		b.begun = false // what runs goes on where it is
	}
	r.result.Revisions++
	r.record(journal.Event{Kind: journal.Plan, Plan: &plan})
	r.Notes(plan.Reason)
	return nil
}
