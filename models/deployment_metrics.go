package models

import (
	"math"
	"time"
)

// DeploymentMeasure is what is counted of the requests to a deployment.
type DeploymentMeasure string

const (
	// MeasureDuration counts the requests that succeeded, by the time from their arrival to their end.
	MeasureDuration DeploymentMeasure = "duration"
	// MeasureFirstToken counts the completions, by the time from their arrival to their first token.
	MeasureFirstToken DeploymentMeasure = "first_token"
	// MeasureFailed counts the requests that failed for another reason than their input or their right.
	MeasureFailed DeploymentMeasure = "failed"
	// MeasureRejected counts the requests that were refused because too many others waited.
	MeasureRejected DeploymentMeasure = "rejected"
	// MeasureInputTokens counts the tokens of prompts and of texts.
	MeasureInputTokens DeploymentMeasure = "input_tokens"
	// MeasureOutputs counts the tokens that were generated, the texts or the images.
	MeasureOutputs DeploymentMeasure = "outputs"
	// MeasurePartActive counts the milliseconds in which a part has had requests, by [PartBucket].
	MeasurePartActive DeploymentMeasure = "part_active"
	// MeasurePartBusy counts those in which the part has computed.
	MeasurePartBusy DeploymentMeasure = "part_busy"
)

// DeploymentCount is how often something was measured in a step of time.
type DeploymentCount struct {
	DeploymentID int64     // the first one of the model
	Step         int64     // seconds; 0: all time
	At           time.Time // the beginning of the step
	Measure      DeploymentMeasure
	Bucket       int64 // of a duration; the number of a part; otherwise 0
	Count        int64
	Millis       int64 // sum of the durations, in milliseconds
}

// renard are the preferred numbers R10 of ISO 3: each is about a quarter more than the one before.
var renard = [...]float64{1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8}

// LastDurationBucket has everything that is longer than the others: more than 5000 seconds.
const LastDurationBucket = 68

// DurationBound is the longest duration of a bucket, of which the first one is a millisecond.
func DurationBound(bucket int64) time.Duration {
	if bucket >= LastDurationBucket {
		return math.MaxInt64
	}
	millis := renard[bucket%int64(len(renard))] * math.Pow10(int(bucket)/len(renard))
	return time.Duration(math.Round(millis * float64(time.Millisecond)))
}

// DurationBucket is the bucket of a duration.
func DurationBucket(d time.Duration) (bucket int64) {
	for d > DurationBound(bucket) {
		bucket++
	}
	return bucket
}

// Durations are a histogram of durations.
type Durations struct {
	Buckets [LastDurationBucket + 1]int64
	Millis  int64 // sum
}

// Add adds so many durations of a bucket, with their sum.
func (h *Durations) Add(bucket, count, millis int64) {
	h.Buckets[min(max(bucket, 0), LastDurationBucket)] += count
	h.Millis += millis
}

// Count is how many there are.
func (h *Durations) Count() (n int64) {
	for _, count := range h.Buckets {
		n += count
	}
	return n
}

// Mean is 0 of no durations.
func (h *Durations) Mean() time.Duration {
	return time.Duration(h.Millis) * time.Millisecond / time.Duration(max(h.Count(), 1))
}

// Quantile estimates what a part p of the durations, from 0 to 1, does not exceed; 0 of none. It lies in the
// bucket of the true value, in which the durations are taken for evenly spread, as histogram_quantile of
// Prometheus has it. In the last bucket, it is the bound of the one before.
func (h *Durations) Quantile(p float64) time.Duration {
	rank := p * float64(h.Count())
	for i, n := range h.Buckets {
		if n == 0 || rank > float64(n) && i < LastDurationBucket {
			rank -= float64(n)
			continue
		}
		if i == LastDurationBucket {
			return DurationBound(LastDurationBucket - 1)
		}
		lower := time.Duration(0)
		if i > 0 {
			lower = DurationBound(int64(i) - 1)
		}
		upper := DurationBound(int64(i))
		return lower + time.Duration(float64(upper-lower)*max(rank, 0)/float64(n))
	}
	return 0
}

// RequestMetrics are those of the requests to a deployment in a span of time.
type RequestMetrics struct {
	Succeeded   int64
	Failed      int64
	Rejected    int64 // because too many others waited
	InputTokens int64 // of prompts and texts
	Outputs     int64 // tokens that were generated, texts or images
	Duration    Durations
	FirstToken  Durations
	Parts       PartTime // of all parts together
}

// PartTime is how much of the time with requests a part has computed, in milliseconds.
type PartTime struct{ Active, Busy int64 }

// Known reports whether there was time with requests.
func (t PartTime) Known() bool { return t.Active > 0 }

// Fraction is from 0 to 1. The rest is the bubble: it waits for other parts, the server or the client.
func (t PartTime) Fraction() float64 { return min(float64(t.Busy)/float64(max(t.Active, 1)), 1) }

func (t *PartTime) add(c DeploymentCount) {
	switch c.Measure {
	case MeasurePartActive:
		t.Active += c.Count
	case MeasurePartBusy:
		t.Busy += c.Count
	}
}

// Requests is how many there were.
func (m *RequestMetrics) Requests() int64 { return m.Succeeded + m.Failed + m.Rejected }

// Add adds a count.
func (m *RequestMetrics) Add(c DeploymentCount) {
	switch c.Measure {
	case MeasureDuration:
		m.Succeeded += c.Count
		m.Duration.Add(c.Bucket, c.Count, c.Millis)
	case MeasureFirstToken:
		m.FirstToken.Add(c.Bucket, c.Count, c.Millis)
	case MeasureFailed:
		m.Failed += c.Count
	case MeasureRejected:
		m.Rejected += c.Count
	case MeasureInputTokens:
		m.InputTokens += c.Count
	case MeasureOutputs:
		m.Outputs += c.Count
	default:
		m.Parts.add(c)
	}
}

// DeploymentMetrics are the metrics of a deployment and of those whose place it has taken.
type DeploymentMetrics struct {
	Deployment Deployment
	Span       string
	From       time.Time
	Until      time.Time // end of the last step, which can lie ahead
	Total      RequestMetrics
	Steps      []RequestMetrics // of equal length, oldest first
	Parts      []PartTime       // of each part of the deployment itself, by its number
	At         time.Time        // when it was read
}

// Add adds a count to the span, and to one of its steps.
func (m *DeploymentMetrics) Add(step int, c DeploymentCount) {
	m.Steps[step].Add(c)
	m.Total.Add(c)
	if part := c.Bucket - PartBucket(m.Deployment.ID, 0); part >= 0 && part < int64(len(m.Parts)) {
		m.Parts[part].add(c)
	}
}

// MaxParts is the most parts of a deployment.
const MaxParts = 64

// PartBucket is the bucket of a part, by the deployment: an update may have another cut.
func PartBucket(deployment, number int64) int64 { return deployment*MaxParts + number }

// Step is how long a step is.
func (m DeploymentMetrics) Step() time.Duration {
	return m.Until.Sub(m.From) / time.Duration(len(m.Steps))
}
