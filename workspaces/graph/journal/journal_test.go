package journal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/workspaces/graph"
)

// fork is a graph of two branches of two operators, and one that joins them.
func fork() graph.Graph {
	two := []graph.Operator{{Name: "1"}, {Name: "2"}}
	return graph.Graph{Name: "fork", Branches: []graph.Branch{{Name: "a", Operators: two}, {Name: "b", Operators: two},
		{Name: "c", After: []string{"a", "b"}, Operators: two[:1]}}}
}

// written writes events, a second after each other, and reads them.
type written struct {
	*testing.T
	path string
	now  time.Time
	file *File
}

func newJournal(t *testing.T) *written {
	w := &written{T: t, path: filepath.Join(t.TempDir(), "graph.journal"), now: time.Unix(1_700_000_000, 0).UTC()}
	w.open(false)
	t.Cleanup(func() { _ = w.file.Close() }) // it may be closed
	return w
}

func (w *written) open(resume bool) (s State) {
	w.Helper()
	var err error
	if w.file, s, err = Open(w.path, resume); err != nil {
		w.Fatal(err)
	}
	return s
}

func (w *written) append(events ...Event) {
	w.Helper()
	for _, e := range events {
		w.now = w.now.Add(time.Second)
		e.At = w.now
		if err := w.file.Append(e); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *written) begin(id string, ended map[string]int) {
	w.Helper()
	g := fork()
	plan, err := graph.Plan(g.Remaining(ended), graph.Machine(2), graph.Settings{})
	if err != nil {
		w.Fatal(err)
	}
	w.append(Begin(g, id, w.now, plan))
}

func (w *written) read() State {
	w.Helper()
	content, err := os.ReadFile(w.path)
	if err != nil {
		w.Fatal(err)
	}
	s, why, err := Read(strings.NewReader(string(content)))
	if err != nil || !why.Empty() {
		w.Fatal(why, err)
	}
	return s
}

func start(branch, operator string) Event {
	return Event{Kind: Start, Branch: branch, Operator: operator, CPUs: []int{1}}
}

func end(branch, operator string, code int) Event {
	return Event{Kind: End, Branch: branch, Operator: operator, Seconds: 2, Code: code}
}

// A journal tells what has ended, with planned and measured times; what has failed or was cut
// off waits again in the next attempt.
func TestResume(t *testing.T) {
	w := newJournal(t)
	w.begin("one", nil)
	w.append(start("a", "1"), start("b", "1"), end("a", "1", 0), start("a", "2"), end("b", "1", 7))
	s := w.read()
	p := s.Progress
	if p.Name != "fork" || p.Attempts != 1 || p.EndedAt != nil || len(p.Branches) != 3 || s.Ended["a"] != 1 || s.Ended["b"] != 0 || s.Times["a"]["1"] != 2 {
		t.Fatalf("%+v", s)
	}
	a, b, c := p.Branches[0], p.Branches[1], p.Branches[2]
	if a.Stage != 1 || len(a.CPUs) != 1 || a.PlannedUntil <= a.PlannedFrom || a.StartedAt == nil || a.EndedAt != nil || a.Operators[1].StartedAt == nil || a.Operators[0].Seconds != 2 {
		t.Errorf("%+v", a)
	}
	if !b.Failed || b.EndedAt == nil || *b.Operators[0].Code != 7 || c.StartedAt != nil || c.PlannedFrom < a.PlannedUntil {
		t.Errorf("%+v, %+v", b, c)
	}
	if err := w.file.Close(); err != nil { // as a crash does, with half a line
		t.Fatal(err)
	}
	whole, err := os.ReadFile(w.path)
	if err == nil {
		err = os.WriteFile(w.path, append(whole, `{"kind":"end","bra`...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if s = w.open(true); s.Ended["a"] != 1 || len(s.Attempts) != 1 || s.Graph != Hash(fork()) {
		t.Errorf("%+v", s)
	}
	w.begin("two", s.Ended)
	p = w.read().Progress
	if a = p.Branches[0]; p.Attempts != 2 || a.StartedAt == nil || a.Operators[0].Code == nil || a.Operators[1].StartedAt != nil || a.Operators[1].Attempts != 1 || p.Branches[1].StartedAt != nil {
		t.Errorf("%+v", p)
	}
	w.append(start("b", "1"), end("b", "1", 0), start("b", "2"), end("b", "2", 0), start("a", "2"), end("a", "2", 0), start("c", "1"), end("c", "1", 0), Event{Kind: Over})
	p = w.read().Progress
	if p.EndedAt == nil || *p.Code != 0 || p.Branches[2].EndedAt == nil || p.Branches[1].Failed || p.Branches[1].Operators[0].Attempts != 2 {
		t.Errorf("%+v", p)
	}
	_ = w.file.Close()
	if s = w.open(false); s.Graph != "" || w.read().Progress.Attempts != 2 {
		t.Errorf("it is changed before it begins: %+v", s)
	}
	if w.begin("three", nil); w.read().Progress.Attempts != 1 {
		t.Errorf("it is not made empty: %+v", w.read())
	}
}

// A revised plan replaces the planned times of what remains.
func TestRevision(t *testing.T) {
	w := newJournal(t)
	w.begin("one", nil)
	w.append(start("a", "1"), end("a", "1", 0))
	plan, err := graph.Plan(fork().Remaining(map[string]int{"a": 1}), graph.Machine(2), graph.Settings{Utilization: 0.9})
	if err != nil {
		t.Fatal(err)
	}
	w.append(Event{Kind: Plan, Plan: &plan})
	if p := w.read().Progress; p.Revisions != 1 || p.Mode != models.GraphSerial || p.Utilization != 90 || p.Branches[0].PlannedUntil < 3 {
		t.Errorf("%+v", p)
	}
}

// One attempt runs at a time.
func TestLock(t *testing.T) {
	w := newJournal(t)
	if _, _, err := Open(w.path, true); models.KindOf(err) != models.KindConflict {
		t.Errorf("two attempts at once: %v", err)
	}
}

// A copy has all of the journal, from before it was begun.
func TestCopy(t *testing.T) {
	w := newJournal(t)
	w.begin("one", nil)
	_ = w.file.Close()
	w.open(true)
	shown := filepath.Join(t.TempDir(), "shown")
	if err := w.file.CopyTo(shown); err != nil {
		t.Fatal(err)
	}
	w.append(start("a", "1"))
	one, err := os.ReadFile(w.path)
	two, failed := os.ReadFile(shown)
	if err != nil || failed != nil || string(one) != string(two) || len(one) == 0 {
		t.Errorf("%q, %q: %v, %v", one, two, err, failed)
	}
}

// What is no journal is refused.
func TestRefusals(t *testing.T) {
	const begin = `{"kind":"attempt","graph":"x","operators":{"a":["1"]},"plan":{"stages":[{"shares":[{"branch":"a"}]}]}}` + "\n"
	for name, content := range map[string]string{"text": "branches: []\n", "no attempt": `{"kind":"over"}` + "\n", "an unknown branch": begin + `{"kind":"start","branch":"z","operator":"1"}` + "\n",
		"an unknown operator": begin + `{"kind":"end","branch":"a","operator":"2"}` + "\n", "no plan": begin + `{"kind":"plan"}` + "\n", "another graph": begin + strings.Replace(begin, `"x"`, `"y"`, 1),
		"too many operators":          strings.Replace(begin, `["1"]`, `["`+strings.Repeat(`","`, graph.MaxOperators)+`"]`, 1),
		"fewer operators than before": strings.Replace(begin, `["1"]`, `["1","2"]`, 1) + begin,
		"a branch without plan":       `{"kind":"attempt","graph":"x","operators":{"a":["1"],"b":["1"]},"plan":{"stages":[{"shares":[{"branch":"a"}]}]}}` + "\n"} {
		if _, why, err := Read(strings.NewReader(content)); why.Empty() || err != nil {
			t.Errorf("%s: %q, %v", name, why, err)
		}
	}
	long := `{"kind":"other","failed":"` + strings.Repeat("x", 1<<20) + `"}` + "\n"
	if _, why, _ := Read(strings.NewReader(begin + strings.Repeat(long, MaxBytes>>20))); !strings.Contains(why.String(), "more than 32 MiB") {
		t.Errorf("too long: %q", why)
	}
}

// Graphs differ by what they run, not by its times.
func TestHash(t *testing.T) {
	g := fork()
	timed := g.With(graph.Times{"a": {"1": 5}})
	other := fork()
	other.Branches[2].After = other.Branches[2].After[:1]
	if Hash(timed) != Hash(g) || Hash(other) == Hash(g) {
		t.Errorf("%s, %s, %s", Hash(g), Hash(timed), Hash(other))
	}
}

// Whatever a journal has, it is refused or read.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"kind":"attempt","graph":"x","operators":{"a":["1"]},"plan":{"stages":[{"shares":[{"branch":"a"}]}]}}` + "\n" + `{"kind":"end","branch":"a","operator":"1"}` + "\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		s, _, err := Read(strings.NewReader(string(content)))
		if err != nil || s.whole > int64(len(content)) {
			t.Errorf("%d of %d bytes: %v", s.whole, len(content), err)
		}
	})
}

// However often a plan is revised, the journal can be read, and keeps what has ended.
func TestRevisionsAreBounded(t *testing.T) {
	w := newJournal(t)
	w.begin("one", nil)
	w.file.size = maxRevised
	plan, err := graph.Plan(fork(), graph.Machine(2), graph.Settings{Utilization: 0.9})
	if err != nil {
		t.Fatal(err)
	}
	w.append(start("a", "1"), Event{Kind: Plan, Plan: &plan}, end("a", "1", 0), Event{Kind: Plan, Plan: &plan})
	if s := w.read(); s.Ended["a"] != 1 || s.Progress.Revisions != 0 {
		t.Errorf("%d operators have ended, the plan was revised %d times", s.Ended["a"], s.Progress.Revisions)
	}
}

// A journal tells when plans were made and how the utilization went, of a long run less often.
func TestSamples(t *testing.T) {
	w := newJournal(t)
	w.begin("one", nil)
	plan, err := graph.Plan(fork(), graph.Machine(2), graph.Settings{Utilization: 0.9})
	if err != nil {
		t.Fatal(err)
	}
	w.append(Event{Kind: Plan, Plan: &plan})
	for range 2 * maxSamples {
		w.append(Event{Kind: Sample, Utilization: 90})
	}
	p := w.read().Progress
	if len(p.Plans) != 2 || p.Plans[0].Mode != "parallel" || p.Plans[1].Mode != "serial" || p.Plans[1].Utilization != 90 || !p.Plans[1].At.Equal(p.PlannedAt) {
		t.Errorf("%+v", p.Plans)
	}
	last := p.Samples[len(p.Samples)-1]
	if n := len(p.Samples); n < maxSamples/2 || n > maxSamples || last.Utilization != 90 || !last.At.Equal(w.now) {
		t.Errorf("%d, the last is %+v", n, last)
	}
}
