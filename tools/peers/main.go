package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	weir, databaseURL, json string
	only                    *regexp.Regexp
	rounds                  int
	load                    load
}

func main() {
	var o options
	stub := flag.String("stub", "", "be the notebook, at this path of a socket or at this host:port")
	flag.StringVar(&o.weir, "weir", "bin/weir", "the program to measure")
	flag.StringVar(&o.databaseURL, "database-url", "", "an empty PostgreSQL database for Weir; otherwise it uses SQLite")
	flag.StringVar(&o.json, "json", "", "file to which the figures are also written")
	only := flag.String("only", "", "regular expression for the names of what is measured")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each is measured")
	flag.IntVar(&o.load.connections, "connections", 16, "keep-alive connections")
	flag.DurationVar(&o.load.span, "span", 3*time.Second, "length of one measurement")
	flag.DurationVar(&o.load.warmUp, "warm-up", time.Second, "time before each measurement")
	flag.Parse()
	if *stub != "" {
		fmt.Fprintln(os.Stderr, serveStub(*stub))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if o.only, err = regexp.Compile(*only); err == nil && (o.rounds < 1 || o.load.connections < 1 || o.load.span <= 0) {
		err = errors.New("-rounds, -connections and -span must be positive")
	}
	if err == nil {
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run starts the servers, measures them in turn, stops them and reports.
func run(ctx context.Context, o options) (err error) {
	program, err := filepath.Abs(o.weir)
	if err != nil {
		return err
	}
	t, err := findTools(ctx, program)
	if err != nil {
		return err
	}
	ps, placement, err := newProcesses()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ps.stopAll(), os.RemoveAll(ps.dir)) }()
	w, err := startWeir(ctx, ps, program, o.databaseURL)
	defer func() { err = errors.Join(err, w.stop(context.WithoutCancel(ctx))) }()
	if err != nil {
		return err
	}
	all, err := startAll(ctx, ps, w, t, o.only)
	if err != nil {
		return err
	}
	r := report{At: time.Now().UTC(), Versions: t.versions, Database: w.database(), Processors: placement,
		Connections: o.load.connections, Rounds: o.rounds, Seconds: o.load.span.Seconds()}
	r.Load[0] = loadAverage()
	if r.Results, err = measureAll(ctx, o, all); err != nil {
		return err
	}
	r.Load[1], r.Ratios = loadAverage(), ratiosOf(r.Results)
	r.print(os.Stdout)
	if o.json == "" {
		return nil
	}
	return r.writeJSON(o.json)
}

// measureAll measures all candidates once in each round, and every other round in
// the opposite order: what else the machine does then meets all alike. A first
// round does not count: Node compiles what it runs often.
func measureAll(ctx context.Context, o options, all []candidate) (results []result, err error) {
	samples := make([][]sample, len(all))
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	for round := range o.rounds + 1 {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round, o.rounds)
		for _, i := range order {
			s, err := o.load.measure(ctx, all[i])
			if err != nil {
				return nil, err
			}
			if round > 0 {
				samples[i] = append(samples[i], s)
			}
		}
		slices.Reverse(order)
	}
	for i, c := range all {
		results = append(results, resultOf(c, samples[i]))
	}
	return results, nil
}

// newProcesses makes the directory of a run and divides the processors.
func newProcesses() (ps *processes, placement string, err error) {
	servers, generator, err := divideCPUs()
	if err != nil {
		return nil, "", err
	}
	placement = fmt.Sprintf("%d processors, shared by servers and load generator", runtime.NumCPU())
	if servers != "" {
		placement = fmt.Sprintf("Servers run on processors %s, the load generator on %s", servers, generator)
	}
	// Not TMPDIR: the path of a socket has at most 107 bytes.
	dir, err := os.MkdirTemp("/tmp", "weir-peers-")
	return &processes{dir: dir, cpus: servers}, placement, err
}

func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
