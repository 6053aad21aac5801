package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weir/cmd/weir/config"
	"weir/handlers"
	"weir/models"
	"weir/workspaces"
	"weir/workspaces/graph"
	"weir/workspaces/graph/runner"
)

const (
	waitPeriod    = 2 * time.Second  // between looks at what is left
	sampleTimeout = 10 * time.Second // of a measurement, while which nothing starts
)

// OperatorRuns are the operators of a task graph as runs of a project: in a cluster, pods with CPU
// limits.
type OperatorRuns struct {
	enabled bool
	connection
	runFlags
	set *pflag.FlagSet
	s   *session

	cpus      int          // that the branches share
	memoryFor int64        // one CPU, in MiB; 0: as the environment has it
	held      atomic.Int64 // thousandths of a CPU that operators hold
}

// Bind adds the flags to a command.
func (o *OperatorRuns) Bind(cmd *cobra.Command) {
	o.set = cmd.Flags()
	o.set.BoolVar(&o.enabled, "runs", false, "start each operator as a run of a project, in a cluster as a pod, with the CPUs of its share as the limit")
	o.connection.bind(o.set)
	o.bindPlace(o.set)
	o.whenInsufficient = workspaces.WhenInsufficientWait
	o.set.Int64Var(&o.runFlags.memory, "memory", 0, "memory of each run in `MIB` (default: the part of your limit or of the quota that its CPUs are)")
}

// Enabled reports whether operators are runs.
func (o *OperatorRuns) Enabled() bool { return o.enabled }

// Check refuses flags about runs without --runs, and models, whose files are on this machine.
func (o *OperatorRuns) Check(model bool) error {
	if o.enabled && model {
		return config.Usagef("--runs: a model in ONNX format is executed on this machine only")
	}
	for _, name := range []string{"server", "token", "token-file", "timeout", "workspace", "project", "environment", "directory", "memory"} {
		if o.set.Changed(name) && !o.enabled {
			return config.Usagef("--%s: needs --runs", name)
		}
	}
	return nil
}

// Open connects to the portal. The branches share cpus, or if that is 0, the whole CPUs of the
// limit or the quota, whichever is less.
func (o *OperatorRuns) Open(cmd *cobra.Command, cpus int) (err error) {
	if o.s, err = o.open(cmd, os.LookupEnv); err != nil {
		return err
	}
	preview, err := o.preview(o.s, o.s.client)
	if err != nil {
		return err
	}
	most := preview.Headroom.Limit.Min(preview.Headroom.Quota)
	switch whole := most.CPUMilli / 1000; {
	case models.IsUnlimited(most.CPUMilli) && cpus == 0:
		return config.Usagef("--cpus: your CPU is unlimited in this project, so the number that branches share must be given")
	case whole < 1:
		return fmt.Errorf("you may use %g CPU in this project; each operator needs a whole one", float64(most.CPUMilli)/1000)
	case int64(cpus) > whole:
		return config.Usagef("--cpus: must be at most %d, by your limit and the quota of the project", whole)
	case cpus == 0:
		cpus = int(min(whole, graph.MaxCPUs))
		most.CPUMilli = min(most.CPUMilli, int64(1000*cpus))
	case models.IsUnlimited(most.CPUMilli):
		most.CPUMilli = int64(1000 * cpus)
	}
	if o.cpus = cpus; !models.IsUnlimited(most.MemoryMiB) {
		o.memoryFor = most.MemoryMiB * 1000 / most.CPUMilli
	}
	return nil
}

// Begin leaves the signals, with which the context of the command ends, to the operators.
func (o *OperatorRuns) Begin() error {
	if err := o.s.Err(); err != nil {
		return err
	}
	o.s.Context = context.WithoutCancel(o.s.Context)
	return nil
}

// preview is what a run would have now.
func (o *OperatorRuns) preview(ctx context.Context, c *client) (p handlers.LaunchPreview, err error) {
	in, err := o.input(o.s, o.set, []string{"true"})
	if err != nil {
		return p, err
	}
	res, err := c.call(ctx, http.MethodPost, "/runs/preview", in, "")
	if err != nil {
		return p, err
	}
	return p, decode(c, res.body, &p)
}

// Sample returns the CPUs that the branches share. Their utilization is the part of them that the
// limit and the quota do not leave, without what the operators hold.
func (o *OperatorRuns) Sample(time.Duration) ([]graph.CPU, float64, error) {
	quick := *o.s.client
	quick.http = new(*o.s.http)
	quick.http.Timeout = min(o.s.http.Timeout, sampleTimeout)
	preview, err := o.preview(o.s, &quick)
	if err != nil {
		return nil, 0, err
	}
	free := preview.Headroom.Remaining.CPUMilli
	if models.IsUnlimited(free) {
		return graph.Machine(o.cpus), 0, nil
	}
	used := 1 - float64(free+o.held.Load())/float64(1000*o.cpus)
	return graph.Machine(o.cpus), min(max(used, 0), 1), nil
}

// Start starts an operator as a run. Until the limit and the quota leave a CPU for it, it waits.
func (o *OperatorRuns) Start(op runner.Operation) (runner.Process, error) {
	in, err := o.input(o.s, o.set, op.Command)
	if err != nil {
		return nil, err
	}
	in.Name, in.Attached, in.LeaseSeconds, in.Request.GPUs = runName(op), true, int64(clientLease/time.Second), new(int64(0))
	s := *o.s
	s.out, s.errOut = op.Out, op.Errors
	return &operatorRun{OperatorRuns: o, s: &s, in: in, share: int64(len(op.CPUs)), seconds: op.Seconds, signals: make(chan os.Signal, 8)}, nil
}

// runName names a run by its operator and marks it by the attempt, so that another attempt finds it.
func runName(op runner.Operation) string {
	name := []rune(op.Branch + "/" + op.Operator)
	mark := attemptMark(op.Attempt)
	return string(name[:min(len(name), 100-len(mark))]) + mark
}

func attemptMark(attempt string) string { return " (graph " + attempt[:min(len(attempt), 8)] + ")" }

// EndLeftovers stops the runs of attempts that were killed, and waits for their end. It returns
// how many there were.
func (o *OperatorRuns) EndLeftovers(attempts []string) (ended int, err error) {
	if len(attempts) == 0 {
		return 0, nil
	}
	live, _, err := fetchAll[handlers.Run](o.s, o.s.client, "/runs", url.Values{"state": {"live"}})
	if err != nil {
		return 0, err
	}
	for _, r := range live {
		for _, attempt := range attempts {
			if !r.MayStop || !strings.HasSuffix(r.Name, attemptMark(attempt)) {
				continue
			}
			if _, err := o.s.call(o.s, http.MethodPost, runPath(r.ID)+"/stop", nil, ""); err != nil && exitCode(err) != ExitConflict {
				return ended, err
			}
			quiet := *o.s
			quiet.out, quiet.errOut = io.Discard, io.Discard
			if last, err := quiet.follow(o.s, r); last.State != models.RunEnded {
				return ended, err
			}
			ended++
		}
	}
	return ended, nil
}

// operatorRun is an operator that waits for its run, or the run that is followed.
type operatorRun struct {
	*OperatorRuns
	s       *session
	in      workspaces.RunInput
	share   int64   // CPUs that it is to have
	cpus    int64   // that it has: fewer if no more are left
	seconds float64 // that were known of it; 0: none
	signals chan os.Signal
	stopped syscall.Signal // before it has started
	told    string         // why it waits
}

// errStopped is the end of a wait by a signal.
var errStopped = errors.New("it has not started")

// Wait starts the run and waits until it has ended.
func (p *operatorRun) Wait() runner.End {
	ctx, stop := context.WithCancel(p.s)
	defer stop()
	run, err := p.begin(ctx)
	lost := (*lostRun)(nil)
	switch {
	case errors.Is(err, errStopped):
		return runner.End{Code: 128 + int(p.stopped), Problem: err.Error()}
	case errors.As(err, &lost):
		return runner.End{Code: ExitUnreachable, Lost: true, Problem: err.Error()}
	case err != nil:
		return runner.End{Code: exitCode(err), Problem: err.Error()}
	}
	p.held.Add(1000 * p.cpus)
	defer p.held.Add(-1000 * p.cpus)
	go p.s.forward(ctx, run.ID, p.signals)
	go p.s.renew(ctx, run.ID, clientLease)
	ended, err := p.s.follow(ctx, run)
	if ended.State != models.RunEnded {
		return runner.End{Code: ExitUnreachable, Lost: true, Problem: fmt.Sprintf("run %d may go on: %v", run.ID, err)}
	}
	e := runner.End{Seconds: p.seconds}
	if ended.StartedAt != nil && ended.EndedAt != nil {
		if took := ended.EndedAt.Sub(*ended.StartedAt).Seconds(); took > 0 { // else it was too short to be measured
			e.Seconds = onOneCPU(p.seconds, took, p.cpus)
		}
	}
	if err != nil {
		e.Code, e.Problem = exitCode(err), err.Error()
		return e
	}
	e.Code = int(*ended.ExitCode)
	return e
}

// onOneCPU is the time on one CPU of a run on several: at least its duration, if it used one of
// them, and at most that on each. What was known is kept within these bounds; of what was not known,
// the duration is all that was measured.
func onOneCPU(known, duration float64, cpus int64) float64 {
	return min(max(known, duration), duration*float64(cpus))
}

// lostRun is a start that may have been carried out.
type lostRun struct{ error }

// begin waits until there is a CPU for the run, and starts it. A signal ends the wait.
func (p *operatorRun) begin(ctx context.Context) (run handlers.Run, err error) {
	for {
		if err := p.awaitHeadroom(ctx); err != nil {
			return run, err
		}
		p.in.Request.CPUMilli = new(1000 * p.cpus)
		if memory := p.memoryOf(p.cpus); memory > 0 {
			p.in.Request.MemoryMiB = &memory
		}
		run, err = p.post(ctx)
		if reportedKind(err) != models.KindNoCapacity {
			return run, err
		}
		p.tell(err.Error()) // others were faster
		if err := p.pause(); err != nil {
			return run, err
		}
	}
}

// post starts the run once. The portal is waited for as by “weir run”.
func (p *operatorRun) post(ctx context.Context) (run handlers.Run, err error) {
	keyed, began, repeated := *p.s.client, time.Now(), false
	for keyed.key = rand.Text(); ; repeated = true {
		res, err := keyed.call(ctx, http.MethodPost, "/runs", p.in, "")
		if err == nil {
			err = decode(p.s.client, res.body, &run)
		}
		switch {
		case err == nil:
			return run, nil
		case reportedKind(err) == "" || reportedKind(err) == models.KindConflict: // nothing was said, or the key was used before
			underway := repeated && reportedKind(err) == models.KindConflict && time.Since(began) < inProgress
			if !underway && (exitCode(err) != ExitUnreachable || time.Since(began) > patience) {
				return run, &lostRun{fmt.Errorf("its run may have started: %w", err)}
			}
		case exitCode(err) != ExitUnreachable || time.Since(began) > patience:
			return run, err
		}
		if err := p.pause(); err != nil {
			return run, &lostRun{errors.New("stopped; its run may have started")}
		}
	}
}

// awaitHeadroom waits until the limit and the quota leave at least one CPU with its memory, and
// takes as many as are left, at most those of the share.
func (p *operatorRun) awaitHeadroom(ctx context.Context) error {
	for began := time.Now(); ; {
		preview, err := p.preview(ctx, p.s.client)
		remaining, most := preview.Headroom.Remaining, preview.Headroom.Limit.Min(preview.Headroom.Quota)
		switch left := p.left(remaining); {
		case exitCode(err) == ExitUnreachable && time.Since(began) < patience:
		case err != nil:
			return err
		case left > 0:
			p.cpus = left
			return nil
		case p.left(most) < 1:
			return WithExitCode(fmt.Errorf("it needs 1 CPU and %d MiB memory; you may use %s", p.memoryOf(1), amounts(most)), ExitConflict)
		default:
			began = time.Now()
			p.tell(fmt.Sprintf("it needs 1 CPU and %d MiB memory; %s are left of what you may use", p.memoryOf(1), amounts(remaining)))
		}
		if err := p.pause(); err != nil {
			return err
		}
	}
}

// memoryOf is the memory of so many CPUs in MiB; 0: as the environment has it.
func (p *operatorRun) memoryOf(cpus int64) int64 {
	if p.set.Changed("memory") {
		return p.runFlags.memory
	}
	return p.memoryFor * cpus
}

// left is how many CPUs resources suffice for, with their memory.
func (p *operatorRun) left(r models.Resources) (cpus int64) {
	cpus = min(r.CPUMilli/1000, p.share)
	for cpus > 0 && p.memoryOf(cpus) > r.MemoryMiB {
		cpus--
	}
	return cpus
}

// amounts are CPU and memory in words.
func amounts(r models.Resources) string {
	return fmt.Sprintf("%g CPU and %d MiB memory", float64(r.CPUMilli)/1000, r.MemoryMiB)
}

// tell says once why the operator waits.
func (p *operatorRun) tell(why string) {
	if p.told != why {
		p.told = why
		fmt.Fprintf(p.s.errOut, "weir: waits: %s\n", why)
	}
}

// pause waits a moment; a signal ends it.
func (p *operatorRun) pause() error {
	select {
	case sig := <-p.signals:
		p.stopped = sig.(syscall.Signal)
		return errStopped
	case <-time.After(waitPeriod):
		return nil
	}
}

// Signal passes a signal on to the run.
func (p *operatorRun) Signal(sig syscall.Signal) {
	select {
	case p.signals <- sig:
	default: // it has got eight that are on their way
	}
}
