package web

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"weir/models"
)

// Chart is a picture of amounts over time: lines of equally long steps.
type Chart struct {
	ID       string
	Title    string
	Summary  string             // text alternative
	Top      int64              // the largest amount that can be drawn
	Say      func(int64) string // formats an amount
	From, To time.Time
	Lines    []Line

	Simulated bool // it is of simulated GPUs
}

// Line is one amount over time, a value a step; a negative value is a gap.
type Line struct {
	Class  string // of the stylesheet: most, mean, …
	Label  string // in the legend; empty: not there
	Values []int64
}

// The picture's own units. It is stretched to its place.
const (
	chartWidth  = 600
	chartHeight = 100
)

// path draws a line as steps; gaps stay gaps.
func (c Chart) path(l Line) string {
	var b strings.Builder
	n, drawing := len(l.Values), false
	for i, v := range l.Values {
		if v < 0 {
			drawing = false
			continue
		}
		y := coordinate(chartHeight - float64(chartHeight)*min(1, float64(v)/float64(max(1, c.Top))))
		if drawing {
			b.WriteString("V" + y)
		} else {
			b.WriteString("M" + coordinate(chartWidth*float64(i)/float64(n)) + " " + y)
		}
		b.WriteString("H" + coordinate(chartWidth*float64(i+1)/float64(n)))
		drawing = true
	}
	return b.String()
}

// values are the formatted amounts of each step, of the lines one below the other, for the
// script that shows those under the pointer. It is a JSON list of texts, empty at gaps.
func (c Chart) values() (string, error) {
	steps := []string{}
	for _, l := range c.Lines {
		for i, v := range l.Values {
			if i >= len(steps) {
				steps = append(steps, "")
			}
			if v < 0 {
				continue
			}
			if steps[i] != "" {
				steps[i] += "\n"
			}
			if l.Label != "" {
				steps[i] += l.Label + " "
			}
			steps[i] += c.Say(v)
		}
	}
	b, err := json.Marshal(steps)
	return string(b), err
}

func coordinate(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

// Slot is the measurements of a GPU in one of several intervals of equal length.
type Slot struct {
	At      time.Time // its beginning
	Samples int64     // 0: nothing was measured
	Mean    Amounts
	Most    Amounts
}

// Amounts are the measured values of a GPU.
type Amounts struct {
	Utilisation int64 // percent
	MemoryMiB   int64
	Temperature int64 // °C
	PowerMW     int64
}

// Slots sorts measurements between two moments into n slots of equal length.
func Slots(buckets []models.Telemetry, from, to time.Time, n int) []Slot {
	slots, sums := make([]Slot, n), make([]Amounts, n)
	length := to.Sub(from) / time.Duration(n)
	for i := range slots {
		slots[i].At = from.Add(time.Duration(i) * length)
	}
	for _, b := range buckets {
		i := int(b.At.Sub(from) / length)
		if b.At.Before(from) || i >= n {
			continue
		}
		s, sum := &slots[i], &sums[i]
		s.Samples += b.Samples
		*sum = Amounts{sum.Utilisation + b.UtilisationSum, sum.MemoryMiB + b.MemorySum,
			sum.Temperature + b.TemperatureSum, sum.PowerMW + b.PowerSum}
		s.Most = Amounts{max(s.Most.Utilisation, b.UtilisationMax), max(s.Most.MemoryMiB, b.MemoryMax),
			max(s.Most.Temperature, b.TemperatureMax), max(s.Most.PowerMW, b.PowerMax)}
	}
	for i, sum := range sums {
		if k := slots[i].Samples; k > 0 {
			slots[i].Mean = Amounts{sum.Utilisation / k, sum.MemoryMiB / k, sum.Temperature / k, sum.PowerMW / k}
		}
	}
	return slots
}

// lines are the mean and the largest of one amount in each slot.
func lines(slots []Slot, of func(Amounts) int64) []Line {
	most, mean := Line{Class: "most"}, Line{Class: "mean"}
	for _, s := range slots {
		if s.Samples == 0 {
			most.Values, mean.Values = append(most.Values, -1), append(mean.Values, -1)
			continue
		}
		most.Values, mean.Values = append(most.Values, of(s.Most)), append(mean.Values, of(s.Mean))
	}
	return []Line{most, mean}
}

// largest is the largest value of a chart's lines; -1 when there is none.
func largest(lines []Line) int64 {
	n := int64(-1)
	for _, l := range lines {
		for _, v := range l.Values {
			n = max(n, v)
		}
	}
	return n
}

// roundUp is the next multiple of step that is not below n.
func roundUp(n, step int64) int64 { return (max(n, 1) + step - 1) / step * step }
