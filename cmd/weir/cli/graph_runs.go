package cli

import (
	"context"
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
	o.set.Int64Var(&o.runFlags.memory, "memory", 0, "memory of each run in `MIB` (default: the part of what you may use that its CPUs are)")
}

// Enabled reports whether operators are runs.
func (o *OperatorRuns) Enabled() bool { return o.enabled }

// Open connects to the portal. The branches share cpus, or if that is 0, those of the limit or the
// quota.
func (o *OperatorRuns) Open(cmd *cobra.Command, cpus int) (err error) {
	if o.s, err = o.open(cmd, os.LookupEnv); err != nil {
		return err
	}
	preview, err := o.preview()
	if err != nil {
		return err
	}
	most := min(preview.Headroom.Limit.CPUMilli, preview.Headroom.Quota.CPUMilli)
	if cpus == 0 && models.IsUnlimited(most) {
		return config.Usagef("--cpus: your CPU is unlimited in this project, so the number that branches share must be given")
	}
	if o.cpus = cpus; cpus == 0 {
		o.cpus = int(min(max(most/1000, 1), graph.MaxCPUs))
	}
	return nil
}

// preview is what a run would have now.
func (o *OperatorRuns) preview() (p handlers.LaunchPreview, err error) {
	in, err := o.input(o.set, []string{"true"})
	if err != nil {
		return p, err
	}
	res, err := o.s.call(o.s, http.MethodPost, "/runs/preview", in, "")
	if err != nil {
		return p, err
	}
	return p, decode(o.s.client, res.body, &p)
}

// Sample returns the CPUs that the branches share. Their utilization is the part of them that the
// limit and the quota do not leave, without what the operators hold.
func (o *OperatorRuns) Sample(time.Duration) ([]graph.CPU, float64, error) {
	preview, err := o.preview()
	if err != nil {
		return nil, 0, err
	}
	free, memory := preview.Headroom.Remaining.CPUMilli, preview.Headroom.Remaining.MemoryMiB
	if o.memoryFor == 0 && !models.IsUnlimited(memory) { // the first time, when nothing of this attempt runs
		o.memoryFor = max(memory/int64(o.cpus), 1)
	}
	if models.IsUnlimited(free) {
		return graph.Machine(o.cpus), 0, nil
	}
	used := 1 - float64(free+o.held.Load())/float64(1000*o.cpus)
	return graph.Machine(o.cpus), min(max(used, 0), 1), nil
}

// Start starts an operator as a run.
func (o *OperatorRuns) Start(op runner.Operation) (runner.Process, error) {
	in, err := o.input(o.set, op.Command)
	if err != nil {
		return nil, err
	}
	gpus, cpu, memory := int64(0), int64(1000*len(op.CPUs)), o.memoryFor*int64(len(op.CPUs))
	in.Name, in.Request.GPUs, in.Request.CPUMilli = runName(op), &gpus, &cpu
	if in.Request.MemoryMiB == nil && memory > 0 {
		in.Request.MemoryMiB = &memory
	}
	s := *o.s
	s.out, s.errOut = op.Out, op.Errors
	res, err := s.once("/runs", in)
	if err != nil {
		return nil, err
	}
	p := &operatorRun{s: &s, signals: make(chan os.Signal, 8), ended: func() { o.held.Add(-cpu) }}
	if err := decode(s.client, res.body, &p.run); err != nil {
		return nil, err
	}
	o.held.Add(cpu)
	return p, nil
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
			if _, err := quiet.follow(o.s, r); err != nil && exitCode(err) != ExitError {
				return ended, err
			}
			ended++
		}
	}
	return ended, nil
}

// operatorRun is a run that is followed.
type operatorRun struct {
	s       *session
	run     handlers.Run
	signals chan os.Signal
	ended   func()
}

// Wait waits until the run has ended. Its time is its duration without the wait for its start.
func (p *operatorRun) Wait() (e runner.End) {
	ctx, stop := context.WithCancel(context.WithoutCancel(p.s)) // signals are the operators'
	defer stop()
	defer p.ended()
	go p.s.forward(ctx, p.run.ID, p.signals)
	ended, err := p.s.follow(ctx, p.run)
	if err != nil {
		return runner.End{Code: ExitError, Problem: err.Error()}
	}
	if ended.StartedAt != nil && ended.EndedAt != nil {
		e.Seconds = ended.EndedAt.Sub(*ended.StartedAt).Seconds()
	}
	e.Code = int(*ended.ExitCode)
	return e
}

// Signal passes a signal on to the run.
func (p *operatorRun) Signal(sig syscall.Signal) {
	if sig == syscall.SIGQUIT { // runs do not know it
		sig = syscall.SIGTERM
	}
	select {
	case p.signals <- sig:
	default: // it has got eight that are on their way
	}
}
