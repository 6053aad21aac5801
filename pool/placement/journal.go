package placement

// journal lists the machines that changed, so that each ranking can catch up
// when it is next asked.
type journal struct {
	start   int     // number of the first entry still there
	entries []int32 // machines
	limit   int
	mark    []int // per machine, the last catching-up that looked at it
	round   int
}

func newJournal(machines int) journal {
	// A ranking that slept longer than this begins anew, which costs it no
	// more than the entries would have.
	return journal{limit: 8*machines + 64, mark: make([]int, machines)}
}

func (j *journal) note(machine int) {
	if len(j.entries) == j.limit {
		j.start += len(j.entries)
		j.entries = j.entries[:0]
	}
	j.entries = append(j.entries, int32(machine))
}

func (j *journal) end() int { return j.start + len(j.entries) }
