package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/pool"
	"weir/pool/placement"
	"weir/pool/placement/baselines"
	"weir/pool/placement/history"
)

const (
	// historySeed is for the policy that draws lots.
	historySeed = 42
	// maxUnmet bounds the sizes of unmet demand in a table.
	maxUnmet = 10
)

// historyReport is what “weir simulate placement --history” says.
type historyReport struct {
	Requests int             `json:"requests"`
	Assumed  int             `json:"assumed"` // never ran, and are taken to last so long
	Lasting  history.Seconds `json:"assumed_seconds"`
	Added    []string        `json:"added"`
	Policies []historyPolicy `json:"policies"`
}

type historyPolicy struct {
	Policy string          `json:"policy"`
	Now    history.Result  `json:"now"`
	Then   *history.Result `json:"then,omitempty"` // with what is added
}

func (s simulation) runHistory(cmd *cobra.Command) error {
	names, extra, err := s.historyPlan(misplaced(cmd, traceFlags, "cannot be used with --history"))
	if err != nil {
		return err
	}
	cfg, err := config.Load(cmd)
	if err != nil {
		return err
	}
	p, err := readPast(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	report, err := s.compare(cmd.Context(), p, names, extra)
	if err != nil {
		return err
	}
	if s.output == "json" {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(report)
	}
	return printHistory(cmd.OutOrStdout(), report)
}

// historyPlan checks the command line; the error names all that is wrong with
// it, beside the problems that are known already.
func (s simulation) historyPlan(problems []string) (policies []string, extra []placement.Node, err error) {
	if policies, err = parsePolicies(s.policy); err != nil {
		problems = append(problems, "--policy: "+err.Error())
	}
	for _, text := range s.add {
		machines, err := history.ParseMachines(text)
		if err != nil {
			problems = append(problems, "--add: "+err.Error())
			continue
		}
		extra = history.Join(extra, machines.Nodes())
	}
	return policies, extra, invalidArguments(problems, s.output)
}

func readPast(ctx context.Context, cfg config.Config) (p pool.Past, err error) {
	store, err := openToRead(ctx, cfg)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if p, err = pool.ReadPast(store.Read(ctx), time.Time{}); err == nil && len(p.Jobs) == 0 {
		err = errors.New("no GPU requests to replay: the history of the pool is empty")
	}
	return p, err
}

func (s simulation) compare(ctx context.Context, p pool.Past, policies []string, extra []placement.Node) (historyReport, error) {
	report := historyReport{Requests: len(p.Jobs), Assumed: p.Assumed, Lasting: history.Seconds(p.Span), Added: append([]string{}, s.add...)}
	for _, name := range policies {
		if ctx.Err() != nil {
			return report, ctx.Err()
		}
		policy, err := baselines.Policy(name, p.Demands, rand.New(rand.NewSource(historySeed)))
		if err != nil {
			return report, err
		}
		result := historyPolicy{Policy: name}
		if len(extra) == 0 {
			result.Now = history.Replay(p.Nodes, p.Jobs, policy)
		} else {
			now, then := history.Compare(p.Nodes, extra, p.Jobs, policy)
			result.Now, result.Then = now, &then
		}
		report.Policies = append(report.Policies, result)
	}
	return report, nil
}

func printHistory(out io.Writer, r historyReport) error {
	fmt.Fprintf(out, "Replayed %d GPU requests", r.Requests)
	if r.Assumed > 0 {
		fmt.Fprintf(out, "; %d were never served and are assumed to last %s", r.Assumed, rounded(r.Lasting))
	}
	fmt.Fprintln(out)
	for _, p := range r.Policies {
		if err := p.print(out, r.Added); err != nil {
			return err
		}
	}
	return nil
}

func (p historyPolicy) print(out io.Writer, added []string) error {
	results := []history.Result{p.Now}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\n%s\tnow\t", p.Policy)
	if p.Then != nil {
		results = append(results, *p.Then)
		fmt.Fprintf(w, "with %s\t", strings.Join(added, ", "))
	}
	fmt.Fprintln(w)
	for _, row := range historyRows {
		fmt.Fprintf(w, "%s\t", row.name)
		for _, result := range results {
			fmt.Fprintf(w, "%s\t", row.value(result))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	titles := []string{"Not met at once, now", "Not met at once, with added machines"}
	for i, result := range results {
		if err := printUnmet(out, titles[i], result.Unmet); err != nil {
			return err
		}
	}
	return nil
}

// historyRows are the figures of a result.
var historyRows = []struct {
	name  string
	value func(history.Result) string
}{
	{"machines", func(r history.Result) string { return strconv.Itoa(r.Machines) }},
	{"GPUs", func(r history.Result) string { return strconv.Itoa(r.GPUs) }},
	{"served", func(r history.Result) string { return strconv.Itoa(r.Placed) }},
	{"refused", func(r history.Result) string { return strconv.Itoa(r.Refused) }},
	{"waited", func(r history.Result) string { return strconv.Itoa(r.Waited) }},
	{"mean wait", func(r history.Result) string { return rounded(r.Waits.Mean) }},
	{"median wait", func(r history.Result) string { return rounded(r.Waits.Median) }},
	{"90th percentile wait", func(r history.Result) string { return rounded(r.Waits.P90) }},
	{"longest wait", func(r history.Result) string { return rounded(r.Waits.Max) }},
	{"GPU hours used", func(r history.Result) string { return fmt.Sprintf("%.1f", r.CoreHours/placement.Whole) }},
	{"GPUs in use on average", func(r history.Result) string { return fmt.Sprintf("%.2f", r.MeanInUse()/placement.Whole) }},
}

func printUnmet(out io.Writer, title string, list []history.Unmet) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintf(out, "\n%s\n", title)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "model\tGPUs\tcores each\tMiB each\trefused\twaited\tlongest wait\t")
	for _, u := range list[:min(len(list), maxUnmet)] {
		memory := "–"
		if u.MemoryMiB > 0 {
			memory = strconv.FormatInt(u.MemoryMiB, 10)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%d\t%d\t%s\t\n", cmp.Or(u.Model, "any"), u.GPUs, u.Cores, memory, u.Refused, u.Waited,
			rounded(u.LongestWait))
	}
	if err := w.Flush(); err != nil || len(list) <= maxUnmet {
		return err
	}
	_, err := fmt.Fprintf(out, "… and %d more sizes; see --output json\n", len(list)-maxUnmet)
	return err
}

// rounded is a duration as people want to read it.
func rounded(s history.Seconds) string { return time.Duration(s).Round(time.Second).String() }
