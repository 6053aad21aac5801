package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"weir/models"
	"weir/pool/notebooks"
)

// notebookSimulation is the command line of “weir simulate notebooks”.
type notebookSimulation struct {
	trace, output       string
	gpus, sessions      int
	seed                uint64
	start, attach, idle time.Duration
}

func newSimulateNotebooksCommand() *cobra.Command {
	var s notebookSimulation
	cmd := &cobra.Command{
		Use:   "notebooks [--trace FILE]",
		Short: "Simulate how long notebook sessions hold GPUs",
		Long: `Report how many GPU-hours sessions hold and how long their tasks wait for GPUs when
sessions reserve them, release them when idle for an hour, run each task in a new
environment, or hold them only while they compute (weir). Without a trace, sessions are
generated from published figures about interactive training.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&s.trace, "trace", "", "CSV `FILE` with the tasks: session, submit_s, duration_s, gpus; can be gzipped")
	flags.IntVar(&s.gpus, "gpus", 0, "`GPUS` of the pool; by default, half of what all reservations need at once")
	flags.IntVar(&s.sessions, "sessions", 1000, "`NUMBER` of generated sessions")
	flags.Uint64Var(&s.seed, "seed", 1, "`SEED` of the generated sessions")
	flags.DurationVar(&s.start, "start", 30*time.Second, "`TIME` in which a new environment starts")
	flags.DurationVar(&s.attach, "attach", 150*time.Millisecond, "`TIME` in which a GPU is attached to a notebook")
	flags.DurationVar(&s.idle, "idle", models.KernelIdleMinutes*time.Minute,
		"`TIME` for which weir keeps a GPU after a task; the default is that of kernel-idle-timeout")
	flags.StringVar(&s.output, "output", "table", "output `FORMAT`: table or json")
	return cmd
}

func (s notebookSimulation) check(misplaced []string) error {
	problems := misplaced
	note := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	note(s.gpus < 0 || s.gpus > 1e6, "--gpus: %d must be from 1 to 1000000", s.gpus)
	note(s.sessions < 1 || s.sessions > 1e6, "--sessions: %d must be from 1 to 1000000", s.sessions)
	for name, value := range map[string]time.Duration{"start": s.start, "attach": s.attach, "idle": s.idle} {
		note(value < 0 || value > 24*time.Hour, "--%s: %s must be from 0s to 24h", name, value)
	}
	return invalidArguments(problems, s.output)
}

// notebookReport is the result of all policies.
type notebookReport struct {
	GPUs     int                `json:"gpus"`
	Sessions int                `json:"sessions"`
	Source   string             `json:"source"` // of the sessions
	Policies []notebooks.Result `json:"policies"`
}

func (s notebookSimulation) run(cmd *cobra.Command) (err error) {
	var unused []string
	report := notebookReport{Source: fmt.Sprintf("generated, seed %d", s.seed)}
	if s.trace != "" {
		report.Source = s.trace
		unused = misplaced(cmd, []string{"sessions", "seed"}, "cannot be used with --trace")
	}
	if err := s.check(unused); err != nil {
		return err
	}
	var sessions []notebooks.Session
	if s.trace == "" {
		sessions = notebooks.Synthetic(s.sessions, s.seed)
	} else if sessions, err = readTable(s.trace, notebooks.Read); err != nil {
		return err
	}
	policies := notebooks.Policies(s.start, s.attach, s.idle)
	report.Sessions, report.GPUs = len(sessions), s.gpus
	if s.gpus == 0 {
		report.GPUs = (notebooks.Simulate(sessions, 1<<30, policies[0]).Most + 1) / 2
	}
	for _, p := range policies {
		report.Policies = append(report.Policies, notebooks.Simulate(sessions, report.GPUs, p))
	}
	if report.Policies[0].Tasks == 0 {
		return errors.New("no task uses a GPU that the pool has")
	}
	if s.output == "json" {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(report)
	}
	return report.print(cmd.OutOrStdout())
}

func (r notebookReport) print(out io.Writer) error {
	fmt.Fprintf(out, "%d sessions (%s), %d tasks, %d GPUs\n\n", r.Sessions, r.Source, r.Policies[0].Tasks, r.GPUs)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "policy\tGPU-hours held\tof reservation\tcomputing\tmost GPUs\tstarted at once\twait p50\twait p99\t\n")
	for _, p := range r.Policies {
		fmt.Fprintf(w, "%s\t%.0f\t%.2f\t%.0f%%\t%d\t%.1f%%\t%s\t%s\t\n", p.Policy, p.Held, p.Held/r.Policies[0].Held, 100*p.Computed/p.Held,
			p.Most, 100*p.AtOnce, p.Wait50.Round(time.Millisecond), p.Wait99.Round(time.Millisecond))
	}
	if left := r.Policies[0].LeftOut; left > 0 {
		fmt.Fprintf(w, "\nSessions left out because they need more GPUs than the pool has: %d\n", left)
	}
	return w.Flush()
}
