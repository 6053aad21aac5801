package runner

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/models"
	"weir/workspaces/graph"
	"weir/workspaces/graph/journal"
)

// run is a graph that runs in a test, with real processes.
type run struct {
	*testing.T
	Config
	dir     string
	ticks   chan time.Time
	signals chan os.Signal
	mu      sync.Mutex
	load    float64 // utilization that the machine is measured with
	out     strings.Builder
	notes   []string
}

// newRun prepares a graph of shell scripts: “branch after…: script; …” with an operator for
// each script. The scripts run in a directory of their own.
func newRun(t *testing.T, branches ...graph.Branch) *run {
	meter, err := NewMeter()
	if err != nil {
		t.Fatal(err)
	}
	r := &run{T: t, dir: t.TempDir(), ticks: make(chan time.Time), signals: make(chan os.Signal)}
	t.Chdir(r.dir)
	r.Config = Config{Graph: graph.Graph{Branches: branches}, Ticks: r.ticks, Signals: r.signals, Out: &lockedWriter{r}, Errors: &lockedWriter{r},
		Sample: func(own time.Duration) ([]graph.CPU, float64, error) {
			cpus, _, err := meter.Sample(own)
			for i := range cpus {
				cpus[i].Load = 0 // so that plans do not depend on what else runs
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			return cpus, r.load, err
		},
		Record: func(journal.Event) error { return nil }, Now: time.Now, Attempt: rand.Text(),
		Notes: func(text string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.notes = append(r.notes, text)
		}}
	return r
}

type lockedWriter struct{ *run }

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(b)
}

// script is a branch of operators that the shell runs.
func script(name string, after []string, scripts ...string) graph.Branch {
	b := graph.Branch{Name: name, After: after}
	for _, s := range scripts {
		b.Operators = append(b.Operators, graph.Operator{Command: []string{"/bin/sh", "-c", s}, Seconds: 1})
	}
	return b
}

// start runs the graph in the background.
func (r *run) start() <-chan Result {
	done := make(chan Result, 1)
	go func() {
		result, err := Run(r.Context(), r.Config)
		if err != nil {
			r.Error(err)
		}
		done <- result
	}()
	return done
}

// await waits for a file that a script makes.
func (r *run) await(name string) {
	r.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		if _, err := os.Stat(filepath.Join(r.dir, name)); err == nil {
			return
		}
		if time.Now().After(deadline) {
			r.Fatalf("no script has made %s: %s", name, r.shown())
		}
		time.Sleep(time.Millisecond)
	}
}

// touch makes a file that a script waits for.
func (r *run) touch(name string) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), nil, 0o600); err != nil {
		r.Fatal(err)
	}
}

// shown is the output and the notes so far.
func (r *run) shown() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.String() + strings.Join(r.notes, "\n")
}

func (r *run) ended(done <-chan Result) Result {
	r.Helper()
	select {
	case result := <-done:
		return result
	case <-time.After(time.Minute):
		r.Fatalf("it has not ended: %s", r.shown())
		return Result{}
	}
}

// wants checks that the output and the notes have some texts; “!” before one: not.
func (r *run) wants(texts ...string) {
	r.Helper()
	shown := r.shown()
	for _, text := range texts {
		if not, found := strings.CutPrefix(text, "!"); found == strings.Contains(shown, not) {
			r.Errorf("%q in:\n%s", text, shown)
		}
	}
}

// where prints the CPUs that a script may use, and what its libraries are told.
const where = `echo cpus $(grep Cpus_allowed_list /proc/self/status | cut -f2) threads $OMP_NUM_THREADS $GOMAXPROCS`

// wait is a script that waits for a file.
func wait(file string) string {
	return `i=0; while [ ! -e ` + file + ` ] && [ $i -lt 6000 ]; do sleep 0.01; i=$((i+1)); done`
}

// Operators run on the CPUs of their branch alone, after those that they wait for, and are
// told how many they have; each line says of which branch it is.
func TestOperatorsRunOnTheirCPUs(t *testing.T) {
	r := newRun(t, script("a", nil, where+"; touch a-ran", `printf 'one\ntwo'`), script("b", nil, where+">&2"),
		script("c", []string{"a", "b"}, "ls a-ran; "+where))
	result := r.ended(r.start())
	if result.Code != 0 || len(result.Operators) != 4 || result.Operators[3].Branch != "c" {
		t.Fatalf("got %+v", result)
	}
	for _, o := range result.Operators {
		if seconds := result.Times[o.Branch][o.Operator]; seconds != o.Seconds || seconds <= 0 {
			t.Errorf("%s/%s took %g s, measured are %g s", o.Branch, o.Operator, o.Seconds, seconds)
		}
	}
	all := runtime.NumCPU()
	r.wants("c | a-ran\n", "a | one\n", "a | two\n", fmt.Sprintf("c | cpus %s threads %d %d\n", everyCPU(t), all, all))
	if all == 2 {
		r.wants("a | cpus 0 threads 1 1\n", "b | cpus 1 threads 1 1\n")
	}
}

// everyCPU is the list of CPUs that this process may use.
func everyCPU(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "Cpus_allowed_list:\t")
	list, _, _ := strings.Cut(rest, "\n")
	return list
}

// What is measured is the time on one CPU: of a command that uses several, the CPU time of all.
func TestTimeOnOneCPU(t *testing.T) {
	r := newRun(t, script("a", nil, `for i in 1 2 3; do (j=0; while [ $j -lt 100000 ]; do j=$((j+1)); done) & done; wait; times > times`))
	result := r.ended(r.start())
	b, err := os.ReadFile("times") // of the shell, and in the second line of its children
	if err != nil {
		t.Fatal(err)
	}
	used := 0.0
	for _, f := range strings.Fields(string(b))[2:] {
		d, err := time.ParseDuration(f)
		if err != nil {
			t.Fatal(err)
		}
		used += d.Seconds()
	}
	if got := result.Operators[0].Seconds; used == 0 || got < used-0.04 { // the shell rounds
		t.Errorf("%g s, its processes have used %g s", got, used)
	}
}

// If an operator fails, what depends on its branch does not start, and other branches go on.
// The exit code is that of the first failure.
func TestFailures(t *testing.T) {
	r := newRun(t, script("a", nil, "exit 3", "touch never"), script("b", []string{"a"}, "touch never"), script("c", []string{"b"}, "touch never"),
		script("d", nil, wait("a-failed"), "exit 4"), script("e", nil, "true"), script("f", []string{"e"}, "touch f-ran"))
	r.CPUs = 2
	if runtime.NumCPU() < 2 {
		t.Fatal("requires two CPUs")
	}
	note := r.Notes
	r.Notes = func(text string) {
		if note(text); strings.HasPrefix(text, "a/1 has failed") {
			r.touch("a-failed")
		}
	}
	result := r.ended(r.start())
	if result.Code != 3 || result.Failed != "a/1" || len(result.Times["a"]) != 0 {
		t.Errorf("got %+v", result)
	}
	r.wants("a/1 has failed with exit code 3", "b does not start, because a has failed", "c does not start, because b has failed", "d/2 has failed with exit code 4")
	if _, err := os.Stat("never"); !errors.Is(err, os.ErrNotExist) {
		t.Error("an operator ran after a failure")
	}
	r.await("f-ran")
}

// A killed branch fails with the signal's exit code, as in a shell; what cannot start, too.
func TestKilledAndMissing(t *testing.T) {
	r := newRun(t, script("a", nil, "kill -9 $$"), graph.Branch{Name: "b", Operators: []graph.Operator{{Command: []string{"./no-program"}, Retries: 1}}},
		script("c", []string{"a"}, "touch never"))
	r.Fixed, r.Settings.Utilization = true, 1 // one after another: b, of unknown time, is not longer
	result := r.ended(r.start())
	if result.Code != 137 || result.Failed != "a/1" {
		t.Errorf("got %+v", result)
	}
	r.wants("a/1 has failed with exit code 137", "b/1 has failed with exit code 127: ", "retry 1 of 1", "c does not start")
}

func TestRetries(t *testing.T) {
	b := script("a", nil, `echo x >> tries; [ $(wc -l < tries) -ge 3 ]`, "echo reached")
	b.Operators[0].Retries = 2
	r := newRun(t, b)
	result := r.ended(r.start())
	if result.Code != 0 || len(result.Operators) != 4 {
		t.Errorf("got %+v", result)
	}
	r.wants("retry 1 of 2", "retry 2 of 2", "a | reached")

	b.Operators[0].Retries = 1
	r = newRun(t, b)
	if result := r.ended(r.start()); result.Code != 1 || len(result.Operators) != 2 {
		t.Errorf("got %+v", result)
	}
	r.wants("retry 1 of 1", "!reached")
}

// Signals reach all processes of the operators, and no further operator starts.
func TestSignals(t *testing.T) {
	r := newRun(t, script("a", nil, `trap 'touch a-stopped; exit 5' TERM; touch a-runs; `+wait("never"), "touch never"))
	r.Graph.Branches[0].Operators[0].Retries = 5
	done := r.start()
	r.await("a-runs")
	r.signals <- syscall.SIGTERM
	result := r.ended(done)
	if result.Code != 5 || len(result.Operators) != 1 {
		t.Errorf("got %+v", result)
	}
	r.await("a-stopped")

	r = newRun(t, script("a", nil, `trap '' INT; touch a-runs; `+wait("end"), "touch never"))
	done = r.start()
	r.await("a-runs")
	r.signals <- syscall.SIGINT
	r.touch("end")
	if result := r.ended(done); result.Code != 130 || len(result.Operators) != 1 {
		t.Errorf("got %+v", result)
	}
}

// When utilization rises, the operators that run go on, and the next ones take the shares of
// the new plan; when it falls, too.
func TestRevision(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Fatal("requires two CPUs")
	}
	r := newRun(t, script("a", nil, "touch a1; "+wait("go1"), "touch a2; "+wait("go2"), where), script("b", nil, "touch b1; "+wait("go1"), "touch b2; "+where))
	r.CPUs = 2
	events := r.kept()
	done := r.start()
	r.await("a1")
	r.await("b1")
	r.setLoad(0.9) // one after another on one CPU
	r.touch("go1")
	r.await("a2") // the longer branch is first
	if _, err := os.Stat("b2"); !errors.Is(err, os.ErrNotExist) {
		t.Error("two operators run, one after another was planned")
	}
	r.setLoad(0)
	r.await("b2")
	r.touch("go2")
	result := r.ended(done)
	if result.Code != 0 || result.Revisions != 2 {
		t.Errorf("got %+v", result)
	}
	r.wants("one operator runs after another on 1 CPU.", "below the second threshold")
	var samples []float64
	for _, e := range *events {
		if e.Kind == journal.Sample {
			samples = append(samples, e.Utilization)
		}
	}
	if !slices.Equal(samples, []float64{90, 0}) {
		t.Errorf("recorded: %v", samples)
	}
}

// Of CPUs with equal load the first is taken, and when a stage begins, those that are the least
// loaded by then.
func TestCPUsOfEachStage(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Fatal("requires two CPUs")
	}
	r := newRun(t, script("a", nil, where+"; touch a1; "+wait("go")), script("b", []string{"a"}, where))
	r.CPUs, r.First = 1, 1
	done := r.start()
	r.await("a1")
	r.setLoad(0.1) // by others, which is assumed of the CPU of an operator; the others are idle
	r.touch("go")
	if result := r.ended(done); result.Code != 0 || result.Revisions != 0 {
		t.Errorf("got %+v", result)
	}
	if runtime.NumCPU() == 2 {
		r.wants("a | cpus 1 threads", "b | cpus 0 threads")
	}
	r.wants("b/1 starts on CPUs")
}

// setLoad changes what the machine is measured with and has it measured. When the second
// tick is taken, the first has been dealt with.
func (r *run) setLoad(utilization float64) {
	r.mu.Lock()
	r.load = utilization
	r.mu.Unlock()
	r.ticks <- time.Time{}
	r.ticks <- time.Time{}
}

func TestRunRefuses(t *testing.T) {
	for _, c := range []struct {
		branch graph.Branch
		cpus   int
		says   string
	}{
		{graph.Branch{Name: "a", Operators: []graph.Operator{{Name: "x"}}}, 0, "branch a, operator x: the command is required"},
		{graph.Branch{Name: "a"}, 0, "branch a has no operators"},
		{script("a", []string{"b"}, "true"), 0, "waits for b"},
		{script("a", nil, "true"), graph.MaxCPUs + 1, "must be from 1 to"},
	} {
		r := newRun(t, c.branch)
		r.CPUs = c.cpus
		_, err := Run(t.Context(), r.Config)
		if e := (*models.Error)(nil); !errors.As(err, &e) || !strings.Contains(e.Fields[0].Reason.String(), c.says) {
			t.Errorf("got %v, want %s", err, c.says)
		}
	}
}

// A real load is measured, without what the graph's own processes do.
func TestMeter(t *testing.T) {
	text := "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 20 30 40 50 1 2 3 7 7\ncpu11 0 0 0 5 0 0 0 0\nintr 4\ncpux 1 1 1 1 1 1 1 1\n"
	if got := parseTimes(text); len(got) != 2 || got[0] != (cpuTime{66 * tick, 156 * tick}) || got[11] != (cpuTime{0, 5 * tick}) {
		t.Errorf("got %v", got)
	}
	if group, used := parseStat("7 (a b) c) S 1 42 7 0 -1 0 0 0 0 0 1 2 3 4 20 0"); group != 42 || used != 10*tick {
		t.Errorf("got %d, %s", group, used)
	}
	if got := parseList("0-2,8,x,4-"); !slices.Equal(got, []int{0, 1, 2, 8}) {
		t.Errorf("got %v", got)
	}
	m := &Meter{allowed: []int{0, 1}, nodes: map[int]int{1: 1}, last: map[int]cpuTime{}}
	cpus, utilization, err := m.Sample(1 << 62)
	if err != nil || utilization != 0 || len(cpus) != 2 || cpus[1].Node != 1 || cpus[0].Load < 0 || cpus[0].Load > 1 {
		t.Errorf("got %v, %g: %v", cpus, utilization, err)
	}
	real, err := NewMeter()
	if err != nil || real.CPUs() != runtime.NumCPU() {
		t.Errorf("%d CPUs, this process may use %d: %v", real.CPUs(), runtime.NumCPU(), err)
	}
}

// The CPU time of a group is that of its processes that run and of their children that have
// ended.
func TestGroupTime(t *testing.T) {
	own, deadline := syscall.Getpgrp(), time.Now().Add(time.Minute)
	for groupTime([]int{own}) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("this process and its group have used no CPU")
		}
	}
	if used := groupTime(nil); used != 0 {
		t.Errorf("no group has used %s", used)
	}
}
