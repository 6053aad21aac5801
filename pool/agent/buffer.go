package agent

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"weir/pool/providers"
)

const (
	samplePeriod = 5 * time.Second

	maxRounds  = int(time.Hour / samplePeriod)
	maxFaults  = 1000
	maxPerBeat = 20_000 // samples in one heartbeat
)

// buffer buffers samples and faults until the portal has received them: samples of
// the last hour, and the last thousand faults.
type buffer struct {
	rounds  []round
	faults  []fault
	counted int // number of the last round
}

// round is one measurement of all devices.
type round struct {
	number  int
	at      time.Time // monotonic
	samples []providers.Sample
}

type fault struct {
	number int
	at     time.Time
	providers.Fault
}

func (m *buffer) add(now time.Time, samples []providers.Sample, faults []providers.Fault) {
	for i := range m.rounds { // only the newest round has processes
		for j := range m.rounds[i].samples {
			m.rounds[i].samples[j].Processes = nil
		}
	}
	for i := range samples {
		for j, p := range samples[i].Processes {
			samples[i].Processes[j].Name = printable(p.Name, 100)
		}
	}
	m.counted++
	m.rounds = append(m.rounds, round{m.counted, now, samples})
	if n := len(m.rounds) - maxRounds; n > 0 {
		m.rounds = slices.Clone(m.rounds[n:])
	}
	for _, f := range faults {
		m.faults = append(m.faults, fault{m.counted, now.Add(-f.Age), f})
	}
	if n := len(m.faults) - maxFaults; n > 0 {
		m.faults = slices.Clone(m.faults[n:])
	}
}

// fill adds the oldest samples and faults to a heartbeat, up to maxPerBeat samples,
// and returns the last round in it.
func (m *buffer) fill(b *providers.Heartbeat, now time.Time) (sent int) {
	for _, r := range m.rounds {
		if len(b.Samples) > 0 && len(b.Samples)+len(r.samples) > maxPerBeat {
			break
		}
		for _, s := range r.samples {
			s.Age += now.Sub(r.at)
			b.Samples = append(b.Samples, s)
		}
		sent = r.number
	}
	for _, f := range m.faults {
		if f.number <= sent {
			f.Age = now.Sub(f.at)
			b.Faults = append(b.Faults, f.Fault)
		}
	}
	return sent
}

// discard drops what was sent, and reports whether more is left.
func (m *buffer) discard(sent int) (more bool) {
	for len(m.rounds) > 0 && m.rounds[0].number <= sent {
		m.rounds = m.rounds[1:]
	}
	for len(m.faults) > 0 && m.faults[0].number <= sent {
		m.faults = m.faults[1:]
	}
	return len(m.rounds) > 1
}

// printable makes text, such as the name of a process, acceptable to the portal.
func printable(text string, limit int) string {
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
