package web

import (
	"context"
	"time"

	"weir/models"
)

// Idleness is how idle a running workspace is.
type Idleness struct {
	Limit    time.Duration // 0: it is never stopped as idle
	Known    bool          // its activity is known
	WorkedAt time.Time
	Signal   string // of the last work; see idleness.Signal
	Reminded bool   // it will be stopped soon
	StopsAt  *time.Time
}

// signalWords say what showed that a workspace works.
var signalWords = map[string]models.Text{
	"":          models.Say("start"),
	"code":      models.Say("code in a kernel"),
	"terminal":  models.Say("typing in a terminal"),
	"processes": models.Say("running processes"),
	"gpu":       models.Say("GPU utilization"),
	"run":       models.Say("a run"),
	"kept":      models.Say("kept running"),
}

// minutesValue formats a limit in minutes.
func minutesValue(ctx context.Context, n int64) string {
	if n == 0 {
		return T(ctx, "never stopped")
	}
	return span(ctx, time.Time{}, time.Time{}.Add(time.Duration(n)*time.Minute))
}
