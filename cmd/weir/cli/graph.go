package cli

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/models"
)

// NewGraphModelCommand returns the command that plans a model in the shared directories.
func NewGraphModelCommand() *cobra.Command {
	var project int64
	var machine models.GraphMachine
	cmd := remoteCommand("model PATH", "Plan a model in ONNX format in the shared directories on shares of CPUs", cobra.ExactArgs(1),
		func(s *session, args []string) error {
			if project == 0 {
				return config.Usagef("no project: set --project")
			}
			query := url.Values{"path": {args[0]}}
			for name, n := range map[string]int{"cpus": machine.CPUs, "utilization": machine.Utilization,
				"second_threshold": machine.SecondThreshold, "first_threshold": machine.FirstThreshold,
				"reduced_cpus": machine.ReducedCPUs, "serial_cpus": machine.SerialCPUs} {
				query.Set(name, strconv.Itoa(n))
			}
			g, res, err := fetch[models.ModelGraph](s, s.client, fmt.Sprintf("/projects/%d/files/graph?%s", project, query.Encode()))
			if err != nil {
				return err
			}
			return s.show(res.body, func(t *table) { modelGraphTables(t, g) })
		})
	f := cmd.Flags()
	f.Int64Var(&project, "project", 0, "project `ID`")
	f.IntVar(&machine.CPUs, "cpus", 8, "`CPUS` of the machine")
	f.IntVar(&machine.Utilization, "utilization", 0, "`PERCENT` of the CPUs that others use")
	f.IntVar(&machine.SecondThreshold, "second-threshold", 0, "`PERCENT` of utilization from which branches share fewer CPUs (default 50)")
	f.IntVar(&machine.FirstThreshold, "first-threshold", 0,
		"`PERCENT` of utilization above which operators run one after another (default 70)")
	f.IntVar(&machine.ReducedCPUs, "reduced-cpus", 0,
		"`CPUS` that take the place of those of the machine between the thresholds (default: three quarters)")
	f.IntVar(&machine.SerialCPUs, "serial-cpus", 0, "`CPUS` above the first threshold (default: half)")
	return cmd
}

// modelGraphTables are the operators of a model by kind, and its branches with their CPUs.
func modelGraphTables(t *table, g models.ModelGraph) {
	t.section("KIND", "OPERATORS", "FLOPS")
	for _, k := range g.Kinds {
		t.row(k.Kind, k.Operators, flops(k.FLOPs))
	}
	known := map[string]models.ModelBranch{}
	for _, b := range g.Branches {
		known[b.Branch] = b
	}
	t.section("STAGE", "BRANCH", "OPERATORS", "FLOPS", "CPUS", "AFTER")
	for i, stage := range g.Plan.Stages {
		for _, share := range stage.Shares {
			b := known[share.Branch]
			t.row(i+1, share.Branch, b.Operators, flops(b.FLOPs), models.Ranges(share.CPUs), strings.Join(share.After, ", "))
		}
	}
	t.section(g.Plan.Reason)
	if g.Plan.Relative {
		t.line("As a ratio of times: planned %.3g, one operator after another on one CPU %.3g, equal shares %.3g.",
			g.Plan.Makespan, g.Plan.Serial, g.Plan.Equal)
	} else {
		t.line("By the times of %s: planned %.3g s, one operator after another on one CPU %.3g s, equal shares %.3g s.",
			models.VisibleName(string(g.Times)), g.Plan.Makespan, g.Plan.Serial, g.Plan.Equal)
	}
	if len(g.Unknown) > 0 {
		t.line("Not all operations are known of %s; those count as the mean of the others.", strings.Join(g.Unknown, ", "))
	}
}

// flops formats a number of floating-point operations.
func flops(n float64) string { return fmt.Sprintf("%.4g", n) }
