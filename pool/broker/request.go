package broker

import (
	"time"

	"weir/models"
)

// ReservationInput is a request for a reservation. GPU amounts are per GPU.
type ReservationInput struct {
	ProjectID       int64      `json:"project_id" minimum:"1"`
	GPUs            int64      `json:"gpus" minimum:"1" maximum:"1024" doc:"number of GPUs, all of one machine"`
	Cores           int64      `json:"cores" minimum:"1" maximum:"100" doc:"GPU cores per GPU"`
	GPUMemoryMiB    int64      `json:"gpu_memory_mib,omitempty" minimum:"0" doc:"GPU memory per GPU, MiB; absent: in proportion to the cores"`
	GPUModel        string     `json:"gpu_model,omitempty" maxLength:"100" doc:"GPU model; empty: any"`
	DurationMinutes int64      `json:"duration_minutes" minimum:"1" doc:"duration in minutes"`
	From            *time.Time `json:"from,omitempty" doc:"earliest start; absent: now"`
	Until           *time.Time `json:"until,omitempty" doc:"latest end; absent: 7 days after the earliest start and the duration"`
	AcceptPart      bool       `json:"accept_part,omitempty" doc:"a part at the earliest start and the rest later is acceptable"`
	AcceptLater     bool       `json:"accept_later,omitempty" doc:"a later start is acceptable"`
	ClientZone      string     `json:"client_zone,omitempty" maxLength:"30" doc:"client zone near which GPUs are preferred; absent: that of the client's address"`
	Priority
}

// usualWindow is how much longer than its duration the window of a request is.
const usualWindow = 7 * 24 * time.Hour

func (in *ReservationInput) duration() time.Duration {
	return time.Duration(in.DurationMinutes) * time.Minute
}

// wish is a checked request.
type wish struct {
	demand      models.Demand
	duration    time.Duration
	from, until time.Time // the window
	last        time.Time // when a reservation must end
	part, later bool      // are acceptable
	zone        string    // of clients, near which devices are preferred

	priority Priority // and the score, for requests that may change other reservations
	score    float64
	parts    models.ScoreParts
}

// window is the checked span of a request, which must end by last.
func (in *ReservationInput) window(now, last time.Time, rules Rules, p *models.Problems) (from, until time.Time) {
	duration := in.duration()
	if in.DurationMinutes < 1 || in.DurationMinutes > int64(rules.MaxDuration/time.Minute) {
		p.Add("duration_minutes", "must be from 1 to %d minutes", int64(rules.MaxDuration/time.Minute))
		return now, now
	}
	from = now
	if in.From != nil && in.From.After(now) {
		from = in.From.Round(time.Microsecond)
	}
	until = from.Add(duration + usualWindow)
	if in.Until != nil {
		until = in.Until.Round(time.Microsecond)
	}
	switch {
	case from.Add(duration).After(now.Add(rules.MaxAhead)):
		p.Add("from", "must be at most %d days ahead", int64(rules.MaxAhead/(24*time.Hour)))
	case from.Add(duration).After(last):
		p.Add("duration_minutes", "must end by %s, when the project or your membership in it ends", models.Moment(last))
	case until.Before(from.Add(duration)):
		p.Add("until", "must be at least %d minutes after the start", in.DurationMinutes)
	case until.After(last):
		until = last
	}
	return from, until
}

func (in *ReservationInput) check(now, last time.Time, rules Rules) (w wish, err error) {
	var p models.Problems
	models.LaunchParameters{GPUs: &in.GPUs, Cores: &in.Cores, GPUMemoryMiB: &in.GPUMemoryMiB, GPUModel: &in.GPUModel}.Check("", &p)
	if in.GPUs < 1 {
		p.Add("gpus", "must be at least %d", 1)
	}
	if in.Cores < 1 {
		p.Add("cores", "must be at least %d", 1)
	}
	w = wish{demand: models.Demand{GPUs: in.GPUs, Cores: in.Cores, GPUMemoryMiB: in.GPUMemoryMiB, GPUModel: in.GPUModel},
		duration: in.duration(), last: last, part: in.AcceptPart, later: in.AcceptLater}
	w.from, w.until = in.window(now, last, rules, &p)
	return w, p.Err()
}
