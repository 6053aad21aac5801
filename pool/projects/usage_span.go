package projects

import (
	"math"
	"strings"
	"time"

	"weir/models"
	"weir/models/store"
)

const (
	day         = 24 * time.Hour
	usualSpan   = 30 * day
	longestDays = 366
)

// UsageQuery selects a span of time until now. Its fields are RFC 3339 dates, in UTC, or
// times.
type UsageQuery struct {
	From  string `query:"from" maxLength:"40" doc:"start of the span, an RFC 3339 date in UTC or time; default 30 days before its end"`
	Until string `query:"until" maxLength:"40" doc:"end of the span, an RFC 3339 time, or a date in UTC, which the span includes; default and at most now"`
}

// Fixed is the query with the ends that its span has at a time, so that all pages of a list are of
// the same.
func (in UsageQuery) Fixed(now time.Time) UsageQuery {
	if from, until, err := in.span(now); err == nil { // otherwise the first page says what is wrong
		in.From, in.Until = from.Format(time.RFC3339Nano), until.Format(time.RFC3339Nano)
	}
	return in
}

// span returns the span that the query selects at a time.
func (in UsageQuery) span(now time.Time) (from, until time.Time, err error) {
	var p models.Problems
	until = now
	if t := momentOf("until", in.Until, day, &p); !t.IsZero() && t.Before(now) {
		until = t
	}
	from = until.Add(-usualSpan)
	if t := momentOf("from", in.From, 0, &p); !t.IsZero() {
		from = t
	}
	if err := p.Err(); err != nil {
		return from, until, err
	}
	switch {
	case !from.Before(until):
		p.Add("from", "must be before the end of the time range")
	case until.Sub(from) > longestDays*day:
		p.Add("from", "must be at most %d days before the end of the time range", longestDays)
	}
	return from, until, p.Err()
}

// momentOf is the time in a field; the zero time if it is empty. afterDate is added to a
// date.
func momentOf(name, text string, afterDate time.Duration, p *models.Problems) time.Time {
	text = strings.TrimSpace(text)
	if text == "" {
		return time.Time{}
	}
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		models.CheckYear(name, t, p)
		return t.Add(afterDate)
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		p.Add(name, "must be a date such as 2027-01-31 or a time such as 2027-01-31T12:00:00Z")
		return time.Time{}
	}
	models.CheckYear(name, t, p)
	return t.UTC()
}

// stepsOf divides a span into equal steps, of about an hour if it is short.
func stepsOf(span time.Duration) (step time.Duration, n int) {
	step = 7 * day
	for _, usual := range []struct{ span, step time.Duration }{{2 * day, time.Hour}, {14 * day, 6 * time.Hour}, {100 * day, day}} {
		if span <= usual.span {
			step = usual.step
			break
		}
	}
	n = max(1, int((span+step/2)/step))
	return span / time.Duration(n), n
}

// Fractions are parts of amounts, from 0; nil where the whole is 0 or unlimited. Storage
// is left out, as usage has none.
type Fractions struct {
	GPUCores     *float64 `json:"gpu_cores,omitempty"`
	GPUMemoryMiB *float64 `json:"gpu_memory_mib,omitempty"`
	CPUMilli     *float64 `json:"cpu_milli,omitempty"`
	MemoryMiB    *float64 `json:"memory_mib,omitempty"`
}

// ofTotal is the part of all usage in a span.
func ofTotal(part, all store.UsageSums) Fractions {
	var whole [4]float64
	for i, amount := range all.Amounts() {
		whole[i] = float64(amount)
	}
	return fractionsOf(part, whole)
}

// ofQuota is the part of a quota that was used over a span.
func ofQuota(part store.UsageSums, quota models.Resources, span time.Duration) Fractions {
	var whole [4]float64
	for i, amount := range [4]int64{quota.GPUCores, quota.GPUMemoryMiB, quota.CPUMilli, quota.MemoryMiB} {
		if !models.IsUnlimited(amount) {
			whole[i] = float64(amount) * span.Seconds()
		}
	}
	return fractionsOf(part, whole)
}

// fractionsOf divides sums, to four decimals.
func fractionsOf(part store.UsageSums, whole [4]float64) Fractions {
	var of [4]*float64
	for i, amount := range part.Amounts() {
		if whole[i] > 0 {
			of[i] = new(math.Round(float64(amount)/whole[i]*1e4) / 1e4)
		}
	}
	return Fractions{of[0], of[1], of[2], of[3]}
}
