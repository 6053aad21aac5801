package cli

import (
	"context"
	"crypto/rand"
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
	operatorLease = 10 * time.Minute // longer than the portal is waited for
	sampleTimeout = 10 * time.Second
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
	memoryFor float64      // one CPU, in MiB; 0: as the environment has it
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
	for _, name := range []string{"server", "token", "token-file", "timeout", "workspace", "project", "environment", "memory"} {
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
	o.s.Context = context.WithoutCancel(o.s.Context) // a signal, with which it ends, is the operators'
	preview, err := o.preview(o.s)
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
		return config.Usagef("--cpus: you may use %d CPUs in this project", whole)
	case cpus == 0:
		cpus = int(min(whole, graph.MaxCPUs))
		most.CPUMilli = min(most.CPUMilli, int64(1000*cpus))
	case models.IsUnlimited(most.CPUMilli):
		most.CPUMilli = int64(1000 * cpus)
	}
	if o.cpus = cpus; !models.IsUnlimited(most.MemoryMiB) {
		o.memoryFor = float64(most.MemoryMiB) * 1000 / float64(most.CPUMilli)
	}
	return nil
}

// preview is what a run would have now.
func (o *OperatorRuns) preview(ctx context.Context) (p handlers.LaunchPreview, err error) {
	in, err := o.input(o.set, []string{"true"})
	if err != nil {
		return p, err
	}
	res, err := o.s.call(ctx, http.MethodPost, "/runs/preview", in, "")
	if err != nil {
		return p, err
	}
	return p, decode(o.s.client, res.body, &p)
}

// Sample returns the CPUs that the branches share. Their utilization is the part of them that the
// limit and the quota do not leave, without what the operators hold.
func (o *OperatorRuns) Sample(time.Duration) ([]graph.CPU, float64, error) {
	ctx, cancel := context.WithTimeout(o.s, sampleTimeout)
	defer cancel()
	preview, err := o.preview(ctx)
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
	in, err := o.input(o.set, op.Command)
	if err != nil {
		return nil, err
	}
	in.Name, in.LeaseSeconds, in.Request.GPUs = runName(op), int64(operatorLease/time.Second), new(int64(0))
	s := *o.s
	s.out, s.errOut = op.Out, op.Errors
	return &operatorRun{OperatorRuns: o, s: &s, in: in, cpus: int64(len(op.CPUs)), signals: make(chan os.Signal, 8)}, nil
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
	cpus    int64
	signals chan os.Signal
}

// Wait starts the run and waits until it has ended. Its time on one CPU is what a plan assumes:
// its duration, without the wait for its start, times its CPUs.
func (p *operatorRun) Wait() (e runner.End) {
	ctx, stop := context.WithCancel(p.s)
	defer stop()
	run, sig, err := p.begin(ctx)
	switch {
	case sig != nil:
		return runner.End{Code: 128 + int(sig.(syscall.Signal)), Problem: "it has not started"}
	case err != nil:
		return runner.End{Code: exitCode(err), Problem: err.Error()}
	}
	p.held.Add(1000 * p.cpus)
	defer p.held.Add(-1000 * p.cpus)
	go p.s.forward(ctx, run.ID, p.signals)
	go p.renew(ctx, run.ID)
	ended, err := p.s.follow(ctx, run)
	if ended.State != models.RunEnded {
		return runner.End{Code: exitCode(err), Lost: true, Problem: fmt.Sprintf("run %d may go on: %v", run.ID, err)}
	}
	if ended.StartedAt != nil && ended.EndedAt != nil {
		e.Seconds = ended.EndedAt.Sub(*ended.StartedAt).Seconds() * float64(p.cpus)
	}
	if err != nil {
		e.Code, e.Problem = exitCode(err), err.Error()
		return e
	}
	e.Code = int(*ended.ExitCode)
	return e
}

// begin starts the run, with fewer CPUs if only these are left now, or waits until one is. A
// signal ends the wait. The portal is waited for as by “weir run”.
func (p *operatorRun) begin(ctx context.Context) (run handlers.Run, ended os.Signal, err error) {
	keyed, told, reached := *p.s.client, "", time.Now()
	for keyed.key = rand.Text(); ; {
		p.ask()
		res, err := keyed.call(ctx, http.MethodPost, "/runs", p.in, "")
		switch exitCode(err) {
		case ExitOK:
			return run, nil, decode(p.s.client, res.body, &run)
		case ExitConflict:
			keyed.key, reached = rand.Text(), time.Now() // it was refused: another one does not repeat it
			if told != err.Error() {
				told = err.Error()
				fmt.Fprintf(p.s.errOut, "weir: waits: %s\n", told)
			}
			if p.fewer(ctx) {
				continue
			}
		case ExitUnreachable:
			if time.Since(reached) > patience {
				return run, nil, err
			}
		default:
			return run, nil, err
		}
		select {
		case ended = <-p.signals:
			return run, ended, nil
		case <-time.After(runPollPeriod):
		}
	}
}

// ask sets what the run needs by its CPUs.
func (p *operatorRun) ask() {
	p.in.Request.CPUMilli = new(1000 * p.cpus)
	if !p.set.Changed("memory") && p.memoryFor > 0 {
		p.in.Request.MemoryMiB = new(int64(p.memoryFor * float64(p.cpus)))
	}
}

// fewer reports whether fewer CPUs, but at least one, are left for the run, which it takes.
func (p *operatorRun) fewer(ctx context.Context) bool {
	preview, err := p.preview(ctx)
	left := preview.Headroom.Remaining.CPUMilli / 1000
	if err != nil || left < 1 || left >= p.cpus {
		return false
	}
	p.cpus = left
	return true
}

// renew renews the lease until the context ends: the run of a graph that was killed ends.
func (p *operatorRun) renew(ctx context.Context, id int64) {
	ticks := time.NewTicker(operatorLease / 10)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			// Tried again at the next tick, ten of which the lease lasts.
			_, _ = p.s.call(ctx, http.MethodPost, runPath(id)+"/renew", workspaces.RunRenewal{Worked: true}, "")
		}
	}
}

// Signal passes a signal on to the run.
func (p *operatorRun) Signal(sig syscall.Signal) {
	select {
	case p.signals <- sig:
	default: // it has got eight that are on their way
	}
}
