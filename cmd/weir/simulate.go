package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/pool/placement"
	"weir/pool/placement/baselines"
	"weir/pool/placement/trace"
)

// maxSeeds bounds how often a simulation is repeated.
const maxSeeds = 10_000

// simulation is the command line of “weir simulate placement”.
type simulation struct {
	nodes, pods, policy, seeds, output string
	inflate                            float64
	scale                              int
	history                            bool
	add                                []string
}

// A trace and the pool's own history take different flags.
var (
	traceFlags   = []string{"nodes", "pods", "seeds", "inflate", "scale"}
	historyFlags = []string{"add", "config", "data-dir", "database-url"}
)

func newSimulatePlacementCommand() *cobra.Command {
	var s simulation
	cmd := &cobra.Command{
		Use:   "placement {--nodes FILE --pods FILE | --history [--add MODEL:GPUSxMACHINES]...}",
		Short: "Simulate placement policies on a trace or on the history of the pool",
		Long: `On a trace of tasks, report how much of the GPUs each policy allocates.
On the history of the pool, report how its machines would have served the requests,
and how they would together with additional ones. The database is only read.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.history {
				return s.runHistory(cmd)
			}
			return s.run(cmd)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.nodes, "nodes", "", "CSV `FILE` with the machines: cpu_milli, memory_mib, gpu, model; can be gzipped")
	flags.StringVar(&s.pods, "pods", "",
		"CSV `FILE` with the tasks: name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec; can be gzipped")
	flags.StringVar(&s.policy, "policy", placement.Default, "`POLICY,...`: "+strings.Join(baselines.Policies(), ", ")+", or all")
	flags.StringVar(&s.seeds, "seeds", "42-51", "`SEEDS` of the random orders of arrival, such as 42-51 or 1,2,7")
	flags.Float64Var(&s.inflate, "inflate", 1.3, "GPUs that the tasks request, as a `MULTIPLE` of the GPUs of the machines")
	flags.IntVar(&s.scale, "scale", 10, "also measure decisions with this `MULTIPLE` of the machines; 1 to skip")
	flags.StringVar(&s.output, "output", "table", "output `FORMAT`: table or json")
	flags.BoolVar(&s.history, "history", false, "replay the requests of the pool instead of a trace")
	flags.StringArrayVar(&s.add, "add", nil,
		"`MACHINES` to add, such as h100:8x4 for four with eight H100, or “NVIDIA L40S/46068:4”; with --history; can be repeated")
	config.AddFlags(cmd, "data-dir", "database-url")
	return cmd
}

func (s simulation) run(cmd *cobra.Command) error {
	plan, err := s.plan(misplaced(cmd, historyFlags, "requires --history"))
	if err != nil {
		return err
	}
	t, err := s.read()
	if err != nil {
		return err
	}
	report, err := t.Run(cmd.Context(), plan, time.Now)
	if err != nil {
		return err
	}
	if s.output == "json" {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(report)
	}
	return printReport(cmd.OutOrStdout(), report)
}

// misplaced finds the flags that were given and mean nothing here.
func misplaced(cmd *cobra.Command, flags []string, why string) (problems []string) {
	for _, flag := range flags {
		if cmd.Flags().Changed(flag) {
			problems = append(problems, "--"+flag+": "+why)
		}
	}
	return problems
}

// plan checks the command line; the error names all that is wrong with it,
// beside the problems that are known already.
func (s simulation) plan(problems []string) (trace.Plan, error) {
	plan := trace.Plan{Inflate: s.inflate, Scale: s.scale}
	note := func(flag string, err error) {
		if err != nil {
			problems = append(problems, "--"+flag+": "+err.Error())
		}
	}
	for flag, file := range map[string]string{"nodes": s.nodes, "pods": s.pods} {
		if file == "" {
			note(flag, fmt.Errorf("is required"))
		}
	}
	var err error
	plan.Policies, err = parsePolicies(s.policy)
	note("policy", err)
	plan.Seeds, err = parseSeeds(s.seeds)
	note("seeds", err)
	if !(s.inflate > 0 && s.inflate <= 100) {
		note("inflate", fmt.Errorf("%v must be above 0 and at most 100", s.inflate))
	}
	if s.scale < 1 || s.scale > 1000 {
		note("scale", fmt.Errorf("%d must be from 1 to 1000", s.scale))
	}
	return plan, invalidArguments(problems, s.output)
}

// invalidArguments is the error that names all problems, also that of the format of the output;
// nil without any.
func invalidArguments(problems []string, output string) error {
	if output != "table" && output != "json" {
		problems = append(problems, fmt.Sprintf("--output: %q must be table or json", output))
	}
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	return &config.UsageError{Title: "invalid arguments", Problems: problems}
}

func parsePolicies(text string) ([]string, error) {
	if text == "all" {
		return baselines.Policies(), nil
	}
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(baselines.Policies(), name) {
			return nil, fmt.Errorf("unknown policy %q; must be one of %s, or all", name, strings.Join(baselines.Policies(), ", "))
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// parseSeeds reads numbers and ranges with commas between them.
func parseSeeds(text string) ([]int64, error) {
	var seeds []int64
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseInt(from, 10, 64)
		last, err2 := strconv.ParseInt(to, 10, 64)
		switch {
		case err != nil || err2 != nil || first > last:
			return nil, fmt.Errorf("%q must be a number or a range such as 42-51", part)
		case last-first >= int64(maxSeeds-len(seeds)):
			return nil, fmt.Errorf("must be at most %d seeds", maxSeeds)
		}
		for i := range last - first + 1 { // seed <= last would never end at the largest number
			seed := first + i
			if slices.Contains(seeds, seed) {
				return nil, fmt.Errorf("seed %d is listed more than once", seed)
			}
			seeds = append(seeds, seed)
		}
	}
	return seeds, nil
}

func (s simulation) read() (t trace.Trace, err error) {
	if t.Nodes, err = readTable(s.nodes, trace.ReadNodes); err != nil {
		return t, err
	}
	t.Pods, err = readTable(s.pods, trace.ReadPods)
	return t, err
}

func readTable[T any](file string, read func(io.Reader, string) (T, error)) (table T, err error) {
	f, err := os.Open(file)
	if err != nil {
		return table, err
	}
	defer f.Close()
	if !strings.HasSuffix(file, ".gz") {
		return read(f, file)
	}
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return table, fmt.Errorf("%s: %w", file, err)
	}
	return read(unzipped, file)
}

func printReport(out io.Writer, r trace.Report) error {
	fmt.Fprintf(out, "%d machines, %d GPUs, %d seeds; percent of the GPUs allocated, by percent of the GPUs requested\n\n",
		r.Nodes, r.GPUs, len(r.Seeds))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "policy\t")
	for _, mark := range trace.Marks {
		fmt.Fprintf(w, "%d%%\t±\t", mark)
	}
	fmt.Fprint(w, "unallocated GPUs at 100%\t±\tdecisions/s\tµs each\tµs at scale\t\n")
	for _, p := range r.Policies {
		fmt.Fprintf(w, "%s\t", p.Policy)
		for _, mark := range trace.Marks {
			if f, ok := p.AllocatedPercent[strconv.Itoa(mark)]; ok {
				fmt.Fprintf(w, "%.2f\t%.2f\t", f.Mean, f.Std)
			} else {
				fmt.Fprint(w, "–\t–\t")
			}
		}
		if u := p.UnallocatedAt100; u != nil {
			fmt.Fprintf(w, "%.1f\t%.1f\t", u.Mean, u.Std)
		} else {
			fmt.Fprint(w, "–\t–\t")
		}
		fmt.Fprintf(w, "%.0f\t%.1f\t", p.DecisionsPerSec, p.MicrosPerDecision)
		if p.Scale > 1 {
			fmt.Fprintf(w, "%.1f (×%d)\t\n", p.MicrosAtScale, p.Scale)
		} else {
			fmt.Fprint(w, "–\t\n")
		}
	}
	return w.Flush()
}
