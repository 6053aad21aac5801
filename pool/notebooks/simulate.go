package notebooks

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// Policy decides when a session takes and releases GPUs.
type Policy struct {
	Name string

	// Whole means that a session takes its size with its first task, and not only what
	// a task needs when it is submitted.
	Whole bool
	// Idle is how long GPUs are kept after a task; Forever: until the session ends.
	Idle time.Duration
	// Start is how long it takes from taking GPUs until a task can use them.
	Start time.Duration
}

// Forever is longer than any session.
const Forever = time.Duration(1<<63 - 1)

// Policies returns those that are compared. A new environment starts in start; a
// GPU is attached to a running notebook in attach and kept for idle after a task.
func Policies(start, attach, idle time.Duration) []Policy {
	return []Policy{
		{Name: "reservation", Whole: true, Idle: Forever},
		{Name: "idle-cull", Whole: true, Idle: time.Hour, Start: start},
		{Name: "batch", Start: start},
		{Name: "weir", Idle: idle, Start: attach},
	}
}

// AtOnce is the longest wait of a task that starts at once.
const AtOnce = time.Second

// Result is what a policy did with a trace. Sessions that need more GPUs than the pool has
// are left out.
type Result struct {
	Policy   string        `json:"policy"`
	Held     float64       `json:"held_gpu_hours"`
	Computed float64       `json:"computed_gpu_hours"`
	Most     int           `json:"most_gpus_at_once"`
	Tasks    int           `json:"tasks"`
	AtOnce   float64       `json:"started_at_once"` // share of the tasks that waited for at most AtOnce
	Wait50   time.Duration `json:"wait_p50_ns"`
	Wait99   time.Duration `json:"wait_p99_ns"`
	LeftOut  int           `json:"sessions_left_out"`
}

// session is a session under a policy.
type session struct {
	Session
	size    int
	next    int           // index of the task that runs, waits or comes next
	ready   time.Duration // of that task: when it was submitted and the one before it had ended
	held    int
	since   time.Duration
	running bool
	waiting bool
	rests   int // distinguishes one rest between tasks from another
}

// event is when a session's next task is submitted, its task ends, or it has rested for
// long enough.
type event struct {
	at    time.Duration
	kind  kind
	order int // of events at the same time
	s     *session
	rest  int
}

type kind int

// At one time, GPUs are released before others are taken.
const (
	ended kind = iota
	rested
	submitted
)

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	a, b := e[i], e[j]
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.order, b.order)) < 0
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// simulation is one run.
type simulation struct {
	policy Policy
	free   int
	gpus   int
	events events
	order  int
	queue  []*session // in the order of arrival; later ones that fit go ahead
	waits  []time.Duration
	result Result
}

// Simulate runs a trace on a pool of GPUs. The tasks of a session run one after the other.
func Simulate(trace []Session, gpus int, p Policy) Result {
	m := simulation{policy: p, free: gpus, gpus: gpus, result: Result{Policy: p.Name}}
	for _, t := range trace {
		s := &session{Session: t, size: t.size()}
		if s.size > gpus {
			m.result.LeftOut++
			continue
		}
		s.ready = t.Tasks[0].Submit
		m.at(s.ready, submitted, s)
	}
	for m.events.Len() > 0 {
		e := heap.Pop(&m.events).(event)
		switch e.kind {
		case submitted:
			m.begin(e.s, e.at)
		case ended:
			m.end(e.s, e.at)
		case rested:
			if e.rest == e.s.rests && !e.s.running {
				m.release(e.s, e.at)
			}
		}
	}
	slices.Sort(m.waits)
	r := &m.result
	r.Tasks = len(m.waits)
	if r.Tasks > 0 {
		r.Wait50, r.Wait99 = m.waits[(r.Tasks-1)/2], m.waits[(r.Tasks*99-1)/100]
		prompt, _ := slices.BinarySearch(m.waits, AtOnce+1)
		r.AtOnce = float64(prompt) / float64(r.Tasks)
	}
	return m.result
}

func (m *simulation) at(at time.Duration, k kind, s *session) {
	heap.Push(&m.events, event{at, k, m.order, s, s.rests})
	m.order++
}

// wants is what a session takes for its next task.
func (m *simulation) wants(s *session) int {
	t := s.Tasks[s.next]
	switch {
	case m.policy.Whole && (s.next == 0 || t.Duration > 0):
		return s.size
	case t.Duration > 0:
		return t.GPUs
	}
	return 0
}

// begin runs the next task of a session with what it holds, or takes what it wants, or
// waits for that.
func (m *simulation) begin(s *session, now time.Duration) {
	s.rests++
	wants := m.wants(s)
	switch {
	case s.held >= wants:
		m.run(s, now)
		return
	case s.held > 0:
		m.release(s, now)
	}
	if len(m.queue) == 0 && m.take(s, wants, now) {
		return
	}
	s.waiting = true
	m.queue = append(m.queue, s)
	m.serve(now)
}

// take gives a session what it wants, if that is free.
func (m *simulation) take(s *session, wants int, now time.Duration) bool {
	if wants > m.free {
		return false
	}
	m.free -= wants
	m.result.Most = max(m.result.Most, m.gpus-m.free)
	s.held, s.since, s.waiting = wants, now, false
	start := now
	if s.Tasks[s.next].Duration > 0 {
		start += m.policy.Start
	}
	m.run(s, start)
	return true
}

func (m *simulation) serve(now time.Duration) {
	m.queue = slices.DeleteFunc(m.queue, func(s *session) bool { return m.take(s, m.wants(s), now) })
}

// run starts the next task of a session.
func (m *simulation) run(s *session, start time.Duration) {
	s.running = true
	t := s.Tasks[s.next]
	if t.Duration > 0 && t.GPUs > 0 {
		m.waits = append(m.waits, start-s.ready)
		m.result.Computed += t.Duration.Hours() * float64(t.GPUs)
	}
	m.at(start+t.Duration, ended, s)
}

// end goes on to the next task, or rests until then, or ends the session.
func (m *simulation) end(s *session, now time.Duration) {
	s.running = false
	before := s.Tasks[s.next]
	if s.next++; s.next == len(s.Tasks) {
		m.release(s, now)
		return
	}
	next := s.Tasks[s.next].Submit
	if s.ready = next; before.Duration > 0 {
		s.ready = max(next, now)
	}
	s.rests++
	m.at(max(next, now), submitted, s)
	if m.policy.Idle < max(next, now)-now {
		m.at(now+m.policy.Idle, rested, s)
	}
}

func (m *simulation) release(s *session, now time.Duration) {
	m.free += s.held
	m.result.Held += (now - s.since).Hours() * float64(s.held)
	s.held = 0
	m.serve(now)
}
