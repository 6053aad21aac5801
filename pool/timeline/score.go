package timeline

import (
	"math"
	"time"
)

// Standing is what a request's score is made of. Factors are from 0 to 1.
type Standing struct {
	Class, QoS, Task, Client float64 // of the priority class, the QoS level, the task type and the client

	Use     float64       // decayed use of the project; see Decay
	Share   float64       // of the project in all use, from 0 to 1
	AllUse  float64       // decayed use of all projects
	NoShows float64       // of the client, decayed; see Decay
	Waiting time.Duration // since the request was made
}

// Weights are the parts of a score.
type Weights struct{ Class, QoS, Task, Client, FairShare, Attendance float64 }

// DefaultWeights weigh the class as much as most other factors together.
var DefaultWeights = Weights{Class: 4, QoS: 1, Task: 1, Client: 1, FairShare: 1, Attendance: 1}

// FullWait is how long a request waits until its score is 1.
const FullWait = 24 * time.Hour

// Part is one part of a score. The points of all parts add up to the score.
type Part struct {
	Name           string
	Factor, Points float64
}

// Score is the priority of a request, from 0 to 1; see Parts.
func (w Weights) Score(s Standing) (score float64) {
	if s.Waiting >= FullWait {
		return 1 // exactly, so that the order of arrival decides
	}
	for _, p := range w.Parts(s) {
		score += p.Points
	}
	return min(max(score, 0), 1)
}

// Parts are the parts of a score: the weighted mean of the factors, and waiting, which
// weighs as much as all of them. A request that has waited for FullWait has the score 1.
// Requests with the same score are served in the order of their arrival, so nothing
// starves: from then on, only requests that are older come before it.
//
// The factor of fair share is that of Slurm's multifactor priority plugin, 2^(-U/S), with
// U the project's part of all use and S its share. That of attendance is 2^(-N), with N the
// client's decayed number of reservations that were not used.
func (w Weights) Parts(s Standing) []Part {
	fair := 1.0
	if s.AllUse > 0 && s.Use > 0 {
		fair = 0
		if s.Share > 0 {
			fair = math.Exp2(-s.Use / s.AllUse / s.Share)
		}
	}
	waited := min(max(s.Waiting.Hours()/FullWait.Hours(), 0), 1)
	all := w.Class + w.QoS + w.Task + w.Client + w.FairShare + w.Attendance
	parts := []Part{{"class", s.Class, w.Class}, {"qos", s.QoS, w.QoS}, {"task", s.Task, w.Task}, {"client", s.Client, w.Client},
		{"fair_share", fair, w.FairShare}, {"attendance", math.Exp2(-s.NoShows), w.Attendance}, {"waiting", waited, waited / 2}}
	last := len(parts) - 1
	if all == 0 {
		return []Part{{"waiting", waited, waited}}
	}
	rest := 1.0
	for i := range last {
		parts[i].Points = parts[i].Points * parts[i].Factor / all / 2
		rest -= parts[i].Points
	}
	if waited == 1 { // it fills the score up
		parts[last].Points = rest
	}
	return parts
}

// Decay is what is left of use after a time: half of it after each half-life.
func Decay(use float64, after, halfLife time.Duration) float64 {
	return use * math.Exp2(-float64(max(after, 0))/float64(halfLife))
}
