package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"weir/cmd/weir/config"
	"weir/models"
	"weir/workspaces"
	"weir/workspaces/graph"
	"weir/workspaces/graph/runner"
)

// sampleTime is how long the utilization is measured before a plan.
const sampleTime = 500 * time.Millisecond

// graphCommand is what the commands about graphs have in common.
type graphCommand struct {
	cpus     int
	settings graph.Settings
	times    string
	measured bool // no --utilization was given
	load     func(cmd *cobra.Command, name string) (graph.Graph, error)
}

func (g *graphCommand) bind(cmd *cobra.Command, cpus string) {
	f := cmd.Flags()
	f.IntVar(&g.cpus, "cpus", 0, cpus)
	f.Float64Var(&g.settings.Utilization, "utilization", 0, "`PART` of the CPUs that others use, from 0 to 1 (default: measured)")
	f.Float64Var(&g.settings.SecondThreshold, "second-threshold", 0.5, "`UTILIZATION` from which branches share fewer CPUs, from 0.01")
	f.Float64Var(&g.settings.FirstThreshold, "first-threshold", 0.7, "`UTILIZATION` above which operators run one after another, at most 1")
	f.IntVar(&g.settings.ReducedCPUs, "reduced-cpus", 0,
		"`CPUS` that take the place of those of the machine between the thresholds (default: three quarters)")
	f.IntVar(&g.settings.SerialCPUs, "serial-cpus", 0, "`CPUS` above the first threshold (default: half)")
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.Replace(name, "utilisation", "utilization", 1))
	})
	f.StringVar(&g.times, "times", "", "`FILE` with measured times (default: that of the graph, with .times.yaml)")
}

// read reads the graph and the times that were measured before.
func (g *graphCommand) read(cmd *cobra.Command, name string) (graph.Graph, error) {
	for _, flag := range []string{"cpus", "second-threshold", "first-threshold", "reduced-cpus", "serial-cpus"} {
		if f := cmd.Flags().Lookup(flag); f.Changed && f.Value.String() == "0" {
			return graph.Graph{}, config.Usagef("--%s: must not be 0", flag)
		}
	}
	if cmd.Flags().Changed("cpus") && (g.cpus < 1 || g.cpus > graph.MaxCPUs) {
		return graph.Graph{}, config.Usagef("--cpus: must be from 1 to %d", graph.MaxCPUs)
	}
	g.measured = !cmd.Flags().Changed("utilization")
	if g.times == "" && name != "-" {
		g.times = strings.TrimSuffix(name, filepath.Ext(name)) + ".times.yaml"
	}
	parsed, err := g.load(cmd, name)
	if err != nil {
		return parsed, graphRefusal(name, err)
	}
	times, err := g.readTimes()
	return parsed.With(times), err
}

// readGraph reads a graph in YAML, or that of a model in ONNX format.
func readGraph(cmd *cobra.Command, name string) (graph.Graph, error) {
	if isONNX(name) {
		return readONNX(name, cmd.ErrOrStderr())
	}
	text, err := readInput(cmd.InOrStdin(), name, workspaces.MaxGraphBytes)
	if err != nil {
		return graph.Graph{}, err
	}
	return workspaces.ParseGraph([]byte(text))
}

// graphRefusal is an error of a plan for the command line: about the file, or about a flag.
func graphRefusal(name string, err error) error {
	if e, ok := errors.AsType[*models.Error](err); ok && len(e.Fields) > 0 && e.Fields[0].Name == "graph" {
		return fmt.Errorf("%s: %s", name, e.Fields[0].Reason)
	}
	return usageOf(err)
}

// readTimes reads the measured times; there may be none yet.
func (g *graphCommand) readTimes() (times graph.Times, err error) {
	if g.times == "" {
		return nil, nil
	}
	b, err := os.ReadFile(g.times)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = yaml.Unmarshal(b, &times)
	}
	if err != nil {
		return nil, fmt.Errorf("the measured times: %w", err)
	}
	return times, nil
}

// writeTimes adds measured times to those of before, in one step.
func (g *graphCommand) writeTimes(measured graph.Times) error {
	if g.times == "" || len(measured) == 0 {
		return nil
	}
	times, err := g.readTimes()
	if err != nil {
		return err
	}
	b, err := yaml.Marshal(times.Merge(measured))
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(g.times), filepath.Base(g.times)+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(b)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), g.times)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// measure begins a measurement of this machine and lets it last a while.
func measure() (*runner.Meter, error) {
	meter, err := runner.NewMeter()
	time.Sleep(sampleTime)
	return meter, err
}

// usable is how many of some CPUs this process may use at the same time: its limit, or its
// cgroup's, can be less.
func usable(cpus int) int { return min(cpus, runtime.GOMAXPROCS(0)) }

func newGraphPlanCommand() *cobra.Command {
	g := graphCommand{load: readGraph}
	var output *outputFlag
	cmd := &cobra.Command{
		Use:   "plan FILE",
		Short: "Plan which CPUs the branches of a task graph run on",
		Long: `Plan a graph in YAML on this machine, or with --cpus on another one. Nothing runs. With “-”,
the graph is read from standard input. A file that ends with .onnx is a model in ONNX format:
its operators are planned, with floating-point operations by their shapes.

Exit codes: 0, the graph is planned; 1, it cannot be, and the error says why; 2, the command
line is wrong.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := g.plan(cmd, args[0])
			if err != nil {
				return err
			}
			return output.write(cmd.OutOrStdout(), printedPlan{plan})
		},
	}
	g.bind(cmd, "`CPUS` of another machine (default: those of this machine)")
	output = bindOutput(cmd)
	return cmd
}

func (g *graphCommand) plan(cmd *cobra.Command, name string) (models.GraphPlan, error) {
	parsed, err := g.read(cmd, name)
	if err != nil {
		return models.GraphPlan{}, err
	}
	machine := graph.Machine(g.cpus)
	if own := !cmd.Flags().Changed("cpus"); own || g.measured {
		meter, err := measure()
		if err != nil {
			return models.GraphPlan{}, err
		}
		cpus, utilization, err := meter.Sample(0)
		if err != nil {
			return models.GraphPlan{}, err
		}
		if own {
			machine = graph.LeastLoaded(cpus, usable(len(cpus)))
		}
		if g.measured {
			g.settings.Utilization = utilization
		}
	}
	plan, err := graph.Plan(parsed, machine, g.settings)
	return plan, graphRefusal(name, err)
}

// readInput reads a file, or with “-” standard input: at most one byte more than is accepted.
func readInput(in io.Reader, name string, limit int64) (string, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer file.Close()
		in = file
	}
	b, err := io.ReadAll(io.LimitReader(in, limit+1))
	return string(b), err
}
