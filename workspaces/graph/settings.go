package graph

import (
	"cmp"
	"math"

	"weir/models"
)

// MaxCPUs is the most CPUs of a machine.
const MaxCPUs = 1024

// Settings adjust a plan. Where one is 0, its default applies.
type Settings struct {
	Utilization     float64 // of the machine, without the graph, 0 to 1
	SecondThreshold float64 // 0.01 to less than FirstThreshold; 0: 0.5
	FirstThreshold  float64 // more than SecondThreshold to 1; 0: 0.7
	ReducedCPUs     int     // P1, from 1 to the CPUs of the machine; 0: three quarters of them
	SerialCPUs      int     // P2, from 1, less than P1 of 3 CPUs and more; 0: half of the CPUs
}

// complete fills in the defaults for a machine of n CPUs and refuses what is out of bounds.
func (s Settings) complete(n int) (Settings, error) {
	var p models.Problems
	if n < 1 || n > MaxCPUs {
		p.Add("cpus", "must be from %d to %d", 1, MaxCPUs)
	}
	s.SecondThreshold, s.FirstThreshold = cmp.Or(s.SecondThreshold, 0.5), cmp.Or(s.FirstThreshold, 0.7)
	s.ReducedCPUs, s.SerialCPUs = cmp.Or(s.ReducedCPUs, max(1, n*3/4)), cmp.Or(s.SerialCPUs, max(1, n/2))
	within := func(field string, value, least float64) bool {
		ok := value >= least && value <= 1
		if !ok {
			p.Add(field, "must be from %g%% to %g%%", percent(least), 100.0)
		}
		return ok
	}
	within("utilization", s.Utilization, 0)
	if within("second_threshold", s.SecondThreshold, 0.01) && within("first_threshold", s.FirstThreshold, 0.01) &&
		s.SecondThreshold >= s.FirstThreshold {
		p.Add("second_threshold", "must be less than the first threshold, %g%%", percent(s.FirstThreshold))
	}
	most, below := n, s.ReducedCPUs
	if n >= 3 { // P2 < P1 < M
		most, below = n-1, s.ReducedCPUs-1
	}
	switch {
	case s.ReducedCPUs < 1 || s.ReducedCPUs > most:
		p.Add("reduced_cpus", "must be from %d to %d", 1, most)
	case s.SerialCPUs < 1 || s.SerialCPUs > below:
		p.Add("serial_cpus", "must be from %d to %d", 1, max(1, below))
	}
	return s, p.Err()
}

// mode is how branches share CPUs at this utilization.
func (s Settings) mode() models.GraphMode {
	switch {
	case s.Utilization > s.FirstThreshold:
		return models.GraphSerial
	case s.Utilization >= s.SecondThreshold:
		return models.GraphReduced
	}
	return models.GraphParallel
}

// budget is how many CPUs branches share, and the whole number of them, on a machine of n.
func (s Settings) budget(n int) (exact float64, whole int) {
	switch s.mode() {
	case models.GraphSerial:
		return float64(s.SerialCPUs), s.SerialCPUs
	case models.GraphReduced:
		n = s.ReducedCPUs
	}
	exact = float64(n) * (1 - s.Utilization)
	return exact, max(1, int(math.Round(exact)))
}

// reason says why a plan has its mode and budget.
func (s Settings) reason(n int) models.Text {
	utilization, first, second := percent(s.Utilization), percent(s.FirstThreshold), percent(s.SecondThreshold)
	exact, whole := s.budget(n)
	switch s.mode() {
	case models.GraphSerial:
		return models.Say("Utilization %g%% is above the first threshold, %g%%: one operator runs after another on %d CPUs.",
			utilization, first, whole)
	case models.GraphReduced:
		return models.Say("Utilization %g%% is between the thresholds, %g%% and %g%%: branches share %g%% of %d CPUs, %.1f, rounded to %d.",
			utilization, second, first, percent(1-s.Utilization), s.ReducedCPUs, exact, whole)
	}
	return models.Say("Utilization %g%% is below the second threshold, %g%%: branches share %g%% of %d CPUs, %.1f, rounded to %d.",
		utilization, second, percent(1-s.Utilization), n, exact, whole)
}

// percent is a part of one in percent, to a tenth.
func percent(f float64) float64 { return math.Round(f*1000) / 10 }
