package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"weir/cmd/weir/cli"
	"weir/cmd/weir/config"
	"weir/workspaces/graph"
	"weir/workspaces/graph/journal"
	"weir/workspaces/graph/runner"
	"weir/workspaces/onnx/execution"
	"weir/workspaces/runtime"
)

func newGraphRunCommand() *cobra.Command {
	var r graphRun
	g := graphCommand{load: r.load}
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a task graph, or a model in ONNX format, on this machine",
		Long: `Run the operators of a graph in YAML as processes of this machine, each on the CPUs of its
branch. Of a model in ONNX format (.onnx), each branch is a process that executes it with ONNX
Runtime or OpenCV, whichever Python (--python) can import; its inputs and results are
arrays of NumPy (.npy). While they run, the utilization of the machine is measured without them; when it
crosses a threshold, the next operators take the shares of a new plan. Each line of output
begins with the name of its branch. What is measured is written to the file of --times, for
the next plan.

What has ended is kept in the file of --journal as it happens. If this command is killed, with
--resume it goes on: operators that have succeeded do not run again, and what others have left
running is killed first.

With --runs, each operator is a run of a project instead, in a cluster a pod, whose limit is the CPUs
of its share; see “weir run”. The branches then share the CPUs of your limit or of the quota, of
which your other workspaces and runs are the utilization.

Signals are forwarded to the operators. If an operator fails, the branches that wait for its
branch do not start, and the others go on.

Exit codes: 0, all operators succeeded; else that of the first one that failed, 128 more than
the number of the signal that ended it, or 127 if it could not start. 1 and 2 also mean that
the graph or the command line is wrong; then nothing has run. With --runs, 3 to 6 have the
meanings that they have for “weir run”; after 6, a run may go on.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.interval < 100*time.Millisecond || r.interval > time.Hour {
				return config.Usagef("--interval: %s must be from 100ms to 1h", r.interval)
			}
			r.cmd, r.graphCommand, r.name = cmd, &g, args[0]
			return r.run()
		},
	}
	g.bind(cmd, "`CPUS` to use, the least loaded ones (default: all that this process may use)")
	f := cmd.Flags()
	f.DurationVar(&r.interval, "interval", 2*time.Second, "`DURATION` between measurements of the utilization, from 100ms")
	f.StringArrayVar(&r.inputs, "input", nil, "`NAME=FILE` with an input of a model; FILE alone if it has only one; can be repeated")
	f.StringVar(&r.results, "results", "", "`DIRECTORY` for the results of a model (default: the file of the model, with .results)")
	f.StringVar(&r.python, "python", "python3", "`PROGRAM` that executes a model, with onnxruntime or cv2")
	r.runs.Bind(cmd)
	f.StringVar(&r.path, "journal", "", "`FILE` that keeps what has ended (default: that of the graph, with .journal)")
	f.BoolVar(&r.resume, "resume", false, "go on where the journal ends")
	return cmd
}

// graphRun is an attempt to run a graph.
type graphRun struct {
	*graphCommand
	cmd      *cobra.Command
	name     string // of the file
	interval time.Duration
	path     string // of the journal; empty: none
	resume   bool
	inputs   []string // of a model
	results  string   // directory
	python   string
	journal  *journal.File // nil: none
	before   journal.State // what earlier attempts have done

	execution *execution.Execution // of a model; nil otherwise
	runs      cli.OperatorRuns
}

func (r *graphRun) note(format string, args ...any) {
	fmt.Fprintf(r.cmd.ErrOrStderr(), "weir: "+format+"\n", args...)
}

func (r *graphRun) run() error {
	if err := r.runs.Check(isONNX(r.name)); err != nil {
		return err
	}
	parsed, err := r.read(r.cmd, r.name)
	if err != nil {
		return err
	}
	if r.execution != nil {
		defer r.execution.Close()
	}
	if r.runs.Enabled() {
		if err := r.runs.Open(r.cmd, r.cpus); err != nil {
			return err
		}
	}
	if err := r.open(parsed); err != nil {
		return err
	}
	result, err := r.attempt(parsed.With(r.before.Times))
	if r.journal != nil {
		err = errors.Join(err, r.journal.Close())
	}
	if err := r.writeTimes(r.before.Times.Merge(result.Times)); err != nil {
		r.note("the measured times are not written: %v", err)
	}
	if err != nil {
		return graphRefusal(r.name, err)
	}
	if result.Code != 0 {
		return cli.WithExitCode(fmt.Errorf("%s: exit code %d", result.Failed, result.Code), result.Code)
	}
	return r.finish()
}

// load reads a graph in YAML, or prepares a model in ONNX format.
func (r *graphRun) load(cmd *cobra.Command, name string) (graph.Graph, error) {
	if !isONNX(name) {
		if len(r.inputs) > 0 || r.results != "" || r.cmd.Flags().Changed("python") {
			return graph.Graph{}, config.Usagef("--input, --results and --python: %s is no model in ONNX format", name)
		}
		return readGraph(cmd, name)
	}
	inputs := map[string]string{}
	for _, text := range r.inputs {
		value, file, named := strings.Cut(text, "=")
		if _, err := os.Stat(text); !named || err == nil {
			value, file = "", text
		}
		if inputs[value] != "" || file == "" {
			return graph.Graph{}, config.Usagef("--input %s: must be NAME=FILE, each name once", text)
		}
		inputs[value] = file
	}
	r.results = cmp.Or(r.results, strings.TrimSuffix(name, filepath.Ext(name))+".results")
	e, err := execution.Prepare(execution.Config{Model: name, Inputs: inputs, Results: r.results, Python: r.python, Resume: r.resume})
	if err != nil {
		return graph.Graph{}, err
	}
	r.execution = &e
	tellUnknown(cmd.ErrOrStderr(), e.Unknown)
	r.note("the branches are executed with %s", e.Runtime)
	return e.Graph, nil
}

// finish tells where the results of a model are.
func (r *graphRun) finish() error {
	if r.execution == nil {
		return nil
	}
	if err := r.execution.Finish(); err != nil {
		return err
	}
	r.note("the results are in %s", r.results)
	return nil
}

// open opens the journal. A directory in which none can be is no reason not to run, unless the
// command line names the journal.
func (r *graphRun) open(g graph.Graph) (err error) {
	shown := os.Getenv(runtime.GraphJournalVariable)
	if err := os.Unsetenv(runtime.GraphJournalVariable); err != nil { // it is not that of graphs which operators run
		return err
	}
	named := r.path != "" || r.resume
	if r.path == "" && r.name != "-" {
		r.path = strings.TrimSuffix(r.name, filepath.Ext(r.name)) + ".journal"
	}
	if r.path == "" {
		if named {
			return config.Usagef("--resume: a graph from standard input needs --journal")
		}
		return nil
	}
	if r.journal, r.before, err = journal.Open(r.path, r.resume); err != nil {
		if !named && (errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS)) {
			r.note("this run cannot be resumed: %v", err)
			return nil
		}
		return err
	}
	if r.before.Graph != "" && r.before.Graph != journal.Hash(g) {
		_ = r.journal.Close() // it was not changed
		return config.Usagef("--resume: the graph is another one than that of the journal; run it without --resume")
	}
	if n := runner.EndLeftovers(r.before.Attempts); n > 0 {
		r.note("%d processes of earlier attempts were still running and are killed", n)
	}
	if r.runs.Enabled() {
		n, err := r.runs.EndLeftovers(r.before.Attempts)
		if err != nil {
			return errors.Join(err, r.journal.Close())
		}
		if n > 0 {
			r.note("runs of earlier attempts that were stopped: %d", n)
		}
	}
	if shown != "" {
		if err := r.journal.CopyTo(shown); err != nil {
			r.note("the portal will not show the progress: %v", err)
		}
	}
	return nil
}

// record keeps an event, if there is a journal.
func (r *graphRun) record(e journal.Event) error {
	if r.journal == nil {
		return nil
	}
	return r.journal.Append(e)
}

// attempt runs what remains of the graph.
func (r *graphRun) attempt(g graph.Graph) (result runner.Result, err error) {
	c := runner.Config{Graph: g, Settings: r.settings, Fixed: !r.measured, Out: r.cmd.OutOrStdout(), Errors: r.cmd.ErrOrStderr(),
		Ended: r.before.Ended, Record: r.record, Attempt: rand.Text(), Now: time.Now, Notes: func(text string) { r.note("%s", text) }}
	if r.runs.Enabled() {
		if err := r.runs.Begin(); err != nil {
			return result, err
		}
		c.Sample, c.Start = r.runs.Sample, r.runs.Start
	} else {
		meter, err := measure()
		if err != nil {
			return result, err
		}
		if !r.cmd.Flags().Changed("cpus") {
			r.cpus = usable(meter.CPUs())
		}
		c.Sample, c.CPUs, c.First = meter.Sample, r.cpus, mathrand.IntN(meter.CPUs())
	}
	signals, release := cli.ForProgram()
	defer release()
	if code := cli.SignalCode(r.cmd.Context()); code != 0 { // it came before they were forwarded
		return result, cli.WithExitCode(errors.New("interrupted before an operator was started"), code)
	}
	ticker := time.NewTicker(r.interval)
	defer ticker.Stop()
	c.Ticks, c.Signals = ticker.C, signals
	return runner.Run(context.WithoutCancel(r.cmd.Context()), c) // a signal, with which the context ends, is the operators'
}
