package notebooks

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Session is a notebook session. It opens with its first task and ends after its last one.
type Session struct {
	Name  string
	Tasks []Task // by time
}

// Task is a computation in a notebook, such as the execution of a cell. One without a
// duration only marks when its session was open.
type Task struct {
	Submit, Duration time.Duration // since the beginning of the trace
	GPUs             int
}

// size is the number of GPUs that a session reserves: the most of its tasks.
func (s Session) size() (most int) {
	for _, t := range s.Tasks {
		most = max(most, t.GPUs)
	}
	return most
}

const maxSeconds = 1e9 // 30 years

// Read reads a trace: CSV with the columns session, submit_s, duration_s and gpus in any
// order, each line a task. Tasks need not be sorted. Errors name the file.
func Read(r io.Reader, file string) (sessions []Session, err error) {
	if sessions, err = read(r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return sessions, nil
}

func read(r io.Reader) ([]Session, error) {
	table := csv.NewReader(r)
	table.ReuseRecord = true
	header, err := table.Read()
	if err != nil {
		return nil, fmt.Errorf("no header: %w", err)
	}
	var at [4]int
	for i, name := range []string{"session", "submit_s", "duration_s", "gpus"} {
		if at[i] = slices.IndexFunc(header, func(h string) bool { return strings.TrimSpace(h) == name }); at[i] < 0 {
			return nil, fmt.Errorf("the header has no column %s", name)
		}
	}
	var sessions []Session
	index := map[string]int{}
	for {
		row, err := table.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := table.FieldPos(0)
		submit, err1 := strconv.ParseFloat(row[at[1]], 64)
		duration, err2 := strconv.ParseFloat(row[at[2]], 64)
		gpus, err3 := strconv.Atoi(row[at[3]])
		if err1 != nil || err2 != nil || err3 != nil || !(submit >= 0 && submit <= maxSeconds) || !(duration >= 0 && duration <= maxSeconds) ||
			gpus < 0 || gpus > 1e6 {
			return nil, fmt.Errorf("line %d: submit_s and duration_s must be seconds from 0, gpus a whole number from 0", line)
		}
		name := row[at[0]]
		i, known := index[name]
		if !known {
			i = len(sessions)
			index[name] = i
			sessions = append(sessions, Session{Name: strings.Clone(name)})
		}
		sessions[i].Tasks = append(sessions[i].Tasks, Task{seconds(submit), seconds(duration), gpus})
	}
	if len(sessions) == 0 {
		return nil, fmt.Errorf("the trace has no tasks")
	}
	for _, s := range sessions {
		slices.SortStableFunc(s.Tasks, func(a, b Task) int { return cmp.Compare(a.Submit, b.Submit) })
	}
	return sessions, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Synthetic generates sessions over a day with what is published about interactive
// training in notebooks: half of the tasks take at most 2 minutes and three quarters at
// most 5; 70% of the sessions that reserve GPUs never use them, and reserved GPUs are idle
// for 81% of the time. The figures are from Carver et al., "NotebookOS: A Replicated
// Notebook Platform for Interactive Training with On-Demand GPUs", ASPLOS 2026; all else
// is assumed: a third of the sessions open for less than two hours, with 1, 2, 4 or 8 GPUs.
func Synthetic(sessions int, seed uint64) []Session {
	const (
		used, busy = 0.3, 0.19
		median     = 120.0 // seconds of a task
	)
	sigma := math.Log(300/median) / 0.6745 // of the logarithm; 0.6745 is the third quartile of a normal distribution
	mean := median * math.Exp(sigma*sigma/2)
	gap := mean * (used/busy - 1)
	r := rand.New(rand.NewPCG(seed, 0))
	all := make([]Session, sessions)
	for i := range all {
		opens := r.Float64() * 24 * 3600
		closes := opens + 3*3600*math.Exp(0.9*r.NormFloat64())
		gpus := []int{1, 1, 1, 1, 1, 1, 2, 2, 4, 8}[r.IntN(10)]
		tasks := []Task{{Submit: seconds(opens), GPUs: gpus}}
		if r.Float64() < used {
			for at := opens + gap*r.ExpFloat64(); at < closes; {
				lasts := median * math.Exp(sigma*r.NormFloat64())
				tasks = append(tasks, Task{seconds(at), seconds(lasts), gpus})
				at += lasts + gap*r.ExpFloat64()
			}
		}
		last := tasks[len(tasks)-1]
		closing := max(seconds(closes), last.Submit+last.Duration)
		all[i] = Session{strconv.Itoa(i + 1), append(tasks, Task{Submit: closing, GPUs: gpus})}
	}
	return all
}
