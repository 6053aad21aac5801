package runner

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/workspaces/graph"
)

// tick is the unit of CPU times in /proc on Linux.
const tick = 10 * time.Millisecond

// Meter measures how busy the CPUs are that this process may use.
type Meter struct {
	allowed []int
	nodes   map[int]int
	last    map[int]cpuTime
	own     time.Duration
}

// cpuTime is the time of a CPU since boot.
type cpuTime struct{ busy, total time.Duration }

// NewMeter begins a measurement.
func NewMeter() (*Meter, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	m := &Meter{nodes: nodesOfCPUs("/sys/devices/system/node")}
	for id := range graph.MaxCPUs {
		if set.IsSet(id) {
			m.allowed = append(m.allowed, id)
		}
	}
	var err error
	m.last, err = readTimes()
	return m, err
}

// CPUs is how many CPUs this process may use.
func (m *Meter) CPUs() int { return len(m.allowed) }

// Sample returns the CPUs with their load, and the utilization of all of them by processes
// other than the graph's, since the last sample or since the meter was made. own is the CPU
// time of the graph's processes so far.
func (m *Meter) Sample(own time.Duration) (cpus []graph.CPU, utilization float64, err error) {
	now, err := readTimes()
	if err != nil {
		return nil, 0, err
	}
	var busy, total time.Duration
	for _, id := range m.allowed {
		b, t := now[id].busy-m.last[id].busy, now[id].total-m.last[id].total
		cpus = append(cpus, graph.CPU{ID: id, Node: m.nodes[id], Load: part(b, t)})
		busy, total = busy+b, total+t
	}
	utilization = part(busy-(own-m.own), total)
	m.last, m.own = now, own
	return cpus, utilization, nil
}

// part is a part of a whole from 0 to 1.
func part(of, whole time.Duration) float64 {
	if whole <= 0 {
		return 0
	}
	return min(max(float64(of)/float64(whole), 0), 1)
}

func readTimes() (map[int]cpuTime, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil, err
	}
	times := parseTimes(string(b))
	if len(times) == 0 {
		return nil, fmt.Errorf("/proc/stat names no CPU")
	}
	return times, nil
}

// parseTimes reads the lines cpuN of /proc/stat: user, nice, system, idle, iowait, irq,
// softirq, steal. What waits for a disk is idle; time of guests is part of user and nice.
func parseTimes(text string) map[int]cpuTime {
	times := map[int]cpuTime{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 9 || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		id, err := strconv.Atoi(fields[0][len("cpu"):])
		if err != nil {
			continue // the sum of all
		}
		var t cpuTime
		for i, f := range fields[1:9] {
			n, _ := strconv.ParseInt(f, 10, 64)
			t.total += time.Duration(n) * tick
			if i != 3 && i != 4 {
				t.busy += time.Duration(n) * tick
			}
		}
		times[id] = t
	}
	return times
}

// nodesOfCPUs is the NUMA node of each CPU; 0 if the system does not say.
func nodesOfCPUs(dir string) map[int]int {
	nodes := map[int]int{}
	lists, _ := filepath.Glob(filepath.Join(dir, "node[0-9]*", "cpulist"))
	for _, list := range lists {
		node, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(list)), "node"))
		b, unreadable := os.ReadFile(list)
		if cmp.Or(err, unreadable) != nil {
			continue
		}
		for _, id := range parseList(strings.TrimSpace(string(b))) {
			nodes[id] = node
		}
	}
	return nodes
}

// parseList reads numbers such as 0-3,8.
func parseList(text string) (ids []int) {
	for words := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(words, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		until, errLast := strconv.Atoi(last)
		for id := from; cmp.Or(err, errLast) == nil && id <= min(until, graph.MaxCPUs); id++ {
			ids = append(ids, id)
		}
	}
	return ids
}

// groupTime is the CPU time of the processes in some process groups: their own, and that of
// their children that have ended.
func groupTime(groups []int) (used time.Duration) {
	if len(groups) == 0 {
		return 0
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		group, own := parseStat(string(b))
		if slices.Contains(groups, group) {
			used += own
		}
	}
	return used
}

// parseStat reads the process group and the CPU time of /proc/PID/stat. The name, in
// parentheses, may contain spaces; fields are counted after it.
func parseStat(text string) (group int, used time.Duration) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return 0, 0
	}
	group, _ = strconv.Atoi(fields[2])
	for _, f := range fields[11:15] { // utime, stime, cutime, cstime
		n, _ := strconv.ParseInt(f, 10, 64)
		used += time.Duration(n) * tick
	}
	return group, used
}
