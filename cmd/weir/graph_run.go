package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weir/cmd/weir/cli"
	"weir/cmd/weir/config"
	"weir/workspaces/graph/runner"
)

func newGraphRunCommand() *cobra.Command {
	var g graphCommand
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a task graph on this machine",
		Long: `Run the operators of a graph in YAML as processes of this machine, each on the CPUs of its
branch. While they run, the utilization of the machine is measured without them; when it
crosses a threshold, the next operators take the shares of a new plan. Each line of output
begins with the name of its branch. What is measured is written to the file of --times, for
the next plan.

Signals are forwarded to the operators. If an operator fails, the branches that wait for its
branch do not start, and the others go on.

Exit codes: 0, all operators succeeded; else that of the first one that failed, 128 more than
the number of the signal that ended it, or 127 if it could not start. 1 and 2 also mean that
the graph or the command line is wrong; then nothing has run.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if interval < 100*time.Millisecond || interval > time.Hour {
				return config.Usagef("--interval: %s must be from 100ms to 1h", interval)
			}
			return g.run(cmd, args[0], interval)
		},
	}
	g.bind(cmd, "`CPUS` to use, the least loaded ones (default: all that this process may use)")
	cmd.Flags().DurationVar(&interval, "interval", 2*time.Second, "`DURATION` between measurements of the utilization, from 100ms")
	return cmd
}

func (g *graphCommand) run(cmd *cobra.Command, name string, interval time.Duration) error {
	if isONNX(name) {
		return config.Usagef("%s: a model in ONNX format can be planned only", name)
	}
	parsed, err := g.read(cmd, name)
	if err != nil {
		return err
	}
	meter, err := measure()
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("cpus") {
		g.cpus = usable(meter.CPUs())
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	errOut := cmd.ErrOrStderr()
	// The context ends with a signal, which is the operators'.
	result, err := runner.Run(context.WithoutCancel(cmd.Context()), runner.Config{Graph: parsed, CPUs: g.cpus, Settings: g.settings,
		Fixed: !g.measured, Sample: meter.Sample, Ticks: ticker.C, Signals: signals, Out: cmd.OutOrStdout(), Errors: errOut,
		Notes: func(text string) { fmt.Fprintln(errOut, "weir: "+text) }})
	if err != nil {
		return g.refusal(name, err)
	}
	if err := g.writeTimes(result.Times); err != nil {
		fmt.Fprintf(errOut, "weir: the measured times are not written: %v\n", err)
	}
	if result.Code != 0 {
		return cli.WithExitCode(fmt.Errorf("%s: exit code %d", result.Failed, result.Code), result.Code)
	}
	return nil
}
