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
	Waiting time.Duration // since the request was made
}

// Weights are the parts of a score.
type Weights struct{ Class, QoS, Task, Client, FairShare float64 }

// DefaultWeights weigh the class as much as all other factors.
var DefaultWeights = Weights{Class: 4, QoS: 1, Task: 1, Client: 1, FairShare: 1}

// FullWait is how long a request waits until its score is 1.
const FullWait = 24 * time.Hour

// Score is the priority of a request, from 0 to 1. Waiting weighs as much as all other
// factors, and a request that has waited for FullWait has the score 1. Requests with the
// same score are served in the order of their arrival, so nothing starves: from then on,
// only requests that are older come before it.
//
// The factor of fair share is that of Slurm's multifactor priority plugin, 2^(-U/S), with
// U the project's part of all use and S its share.
func (w Weights) Score(s Standing) float64 {
	fair := 1.0
	if s.AllUse > 0 && s.Use > 0 {
		fair = 0
		if s.Share > 0 {
			fair = math.Exp2(-s.Use / s.AllUse / s.Share)
		}
	}
	all := w.Class + w.QoS + w.Task + w.Client + w.FairShare
	sum := w.Class*s.Class + w.QoS*s.QoS + w.Task*s.Task + w.Client*s.Client + w.FairShare*fair
	waited := min(max(s.Waiting.Hours()/FullWait.Hours(), 0), 1)
	if waited == 1 || all == 0 {
		return waited
	}
	return (sum/all + waited) / 2
}

// Decay is what is left of use after a time: half of it after each half-life.
func Decay(use float64, after, halfLife time.Duration) float64 {
	return use * math.Exp2(-float64(max(after, 0))/float64(halfLife))
}
