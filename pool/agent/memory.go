package agent

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"weir/pool/providers"
)

const (
	maxRounds  = int(time.Hour / samplePeriod) // kept while the portal is away
	maxFaults  = 1000
	maxPerBeat = 20_000 // samples: more would be too large a request
)

// memory keeps what was measured until the portal has it: of samples the last
// hour, of faults the last thousand.
type memory struct {
	rounds  []round
	faults  []fault
	counted int // rounds and faults ever kept
}

// round is one measurement of all devices.
type round struct {
	number  int
	at      time.Time // its monotonic reading counts
	samples []providers.Sample
}

type fault struct {
	number int
	at     time.Time
	providers.Fault
}

// mark is up to where a memory was sent.
type mark struct{ number int }

func (m *memory) keep(now time.Time, samples []providers.Sample, faults []providers.Fault) {
	for i := range m.rounds { // only the newest tells which processes ran
		for j := range m.rounds[i].samples {
			m.rounds[i].samples[j].Processes = nil
		}
	}
	for i := range samples {
		for j, p := range samples[i].Processes {
			samples[i].Processes[j].Name = visible(p.Name, 100)
		}
	}
	m.counted++
	m.rounds = append(m.rounds, round{m.counted, now, samples})
	if n := len(m.rounds) - maxRounds; n > 0 {
		m.rounds = append([]round(nil), m.rounds[n:]...)
	}
	for _, f := range faults {
		m.faults = append(m.faults, fault{m.counted, now.Add(-f.Age), f})
	}
	if n := len(m.faults) - maxFaults; n > 0 {
		m.faults = append([]fault(nil), m.faults[n:]...)
	}
}

// fill puts into a heartbeat what the portal does not have, with its age, the
// oldest first, as much as one heartbeat may hold.
func (m *memory) fill(b *providers.Heartbeat, now time.Time) mark {
	sent := mark{}
	for _, r := range m.rounds {
		if len(b.Samples) > 0 && len(b.Samples)+len(r.samples) > maxPerBeat {
			break
		}
		for _, s := range r.samples {
			s.Age += now.Sub(r.at)
			b.Samples = append(b.Samples, s)
		}
		sent.number = r.number
	}
	for _, f := range m.faults {
		if f.number <= sent.number {
			f.Age = now.Sub(f.at)
			b.Faults = append(b.Faults, f.Fault)
		}
	}
	return sent
}

// forget drops what the portal has; it tells whether more is left.
func (m *memory) forget(sent mark) (more bool) {
	for len(m.rounds) > 0 && m.rounds[0].number <= sent.number {
		m.rounds = m.rounds[1:]
	}
	for len(m.faults) > 0 && m.faults[0].number <= sent.number {
		m.faults = m.faults[1:]
	}
	return len(m.rounds) > 1
}

// visible makes a text of somebody else's, such as the name of a process, one
// that the portal accepts.
func visible(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return '?'
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit])
	}
	return text
}
