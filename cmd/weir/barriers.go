package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/models"
	"weir/workspaces/barrier"
)

// barrierCommand is the command line of “weir barriers”.
type barrierCommand struct {
	physical, threads int
	report            config.Choice
}

func newBarriersCommand() *cobra.Command {
	b := barrierCommand{report: config.Choice{Value: "text", Allowed: []string{"text", "json", "none"}}}
	cmd := &cobra.Command{
		Use:   "barriers FILE.ptx",
		Short: "Allocate the physical barriers of GPU kernels in PTX",
		Long: `Rewrite kernels that use any number of logical barriers for the physical barriers of a
thread block. The rewritten PTX is written to standard output, the report about segments,
lifetimes and reuse to standard error. With “-”, PTX is read from standard input.

Exit codes: 0, the kernels were rewritten; 1, they cannot be, and the error names the line;
2, the command line is wrong.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return b.run(cmd, args[0]) },
	}
	cmd.Flags().IntVar(&b.physical, "physical", 16, "physical `BARRIERS` of a thread block, from 1 to 16")
	cmd.Flags().IntVar(&b.threads, "threads", 0, "`THREADS` of a one-dimensional block, for kernels without .reqntid; 0 if not known")
	cmd.Flags().Var(&b.report, "report", "`FORMAT` of the report: text, json or none")
	return cmd
}

func (b barrierCommand) run(cmd *cobra.Command, name string) error {
	if b.physical < 1 || b.physical > 16 {
		return config.Usagef("--physical: %d must be from 1 to 16", b.physical)
	}
	if b.threads < 0 || b.threads > 1024 {
		return config.Usagef("--threads: %d must be from 0 to 1024", b.threads)
	}
	source, err := readInput(cmd.InOrStdin(), name, barrier.MaxBytes)
	if err != nil {
		return err
	}
	a, err := barrier.Allocate(cmd.Context(), source, barrier.Options{Physical: b.physical, Threads: b.threads})
	if e, ok := errors.AsType[*models.Error](err); ok && len(e.Fields) > 0 {
		return fmt.Errorf("%s: %s", name, e.Fields[0].Reason)
	}
	if err != nil {
		return err
	}
	if err := b.print(cmd.ErrOrStderr(), a.Report); err != nil {
		return err
	}
	_, err = io.WriteString(cmd.OutOrStdout(), a.PTX)
	return err
}

func (b barrierCommand) print(out io.Writer, report models.BarrierReport) error {
	switch b.report.Value {
	case "none":
		return nil
	case "json":
		return writeJSON(out, report)
	}
	if len(report.Kernels) == 0 {
		fmt.Fprintln(out, "The module has no kernel that uses barriers.")
	}
	for _, k := range report.Kernels {
		fmt.Fprintf(out, "%s (line %d): %d logical barriers in %d segments use %d of %d physical barriers\n", k.Name, k.Line,
			k.Logical, len(k.Segments), k.Used, report.Physical)
		if k.Threads == 0 {
			fmt.Fprintln(out, "The number of threads is not known: state .reqntid or --threads to reuse more barriers.")
		}
		for _, s := range k.Segments {
			fmt.Fprintf(out, "\nSegment %d, lines %d to %d: %d physical barriers (%s)\n", s.Number, s.From, s.Until, s.Used, s.Method)
			w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "barrier\tphysical\tsteps\tproducers\tconsumers\tafter\treuses")
			for _, one := range s.Barriers {
				fmt.Fprintf(w, "%s\t%d\t%d–%d\t%s\t%s\t%s\t%s\n", one.Name, one.Physical, one.From, one.Until, linesOf(one.Producers),
					linesOf(one.Consumers), strings.Join(one.After, " "), one.Reuses)
			}
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// linesOf are the lines of operations.
func linesOf(uses []models.BarrierUse) string {
	return strings.Join(models.Map(uses, func(u models.BarrierUse) string { return fmt.Sprint(u.Line) }), ",")
}
