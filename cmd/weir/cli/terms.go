package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/models"
)

// dayNames are the days of the week as models.Window numbers them.
var dayNames = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// weekOrder is the display order of the days: the week begins on Monday.
var weekOrder = []int{1, 2, 3, 4, 5, 6, 0}

// Values without a limit: of hours, and of devices and projects.
const (
	always = "always"
	all    = "all"
)

// parseHours parses each text as a window. A single “always” is no window.
func parseHours(texts []string) (hours []models.Window, err error) {
	if len(texts) == 1 && strings.EqualFold(strings.TrimSpace(texts[0]), always) {
		return nil, nil
	}
	var failed []error
	for _, text := range texts {
		w, err := parseWindow(text)
		hours, failed = append(hours, w), append(failed, err)
	}
	return hours, errors.Join(failed...)
}

// parseWindow parses days and a span of hours: “mon-fri 20:00-08:00”,
// “sat,sun 00:00-24:00”, “daily 22:00-06:00”.
func parseWindow(text string) (w models.Window, err error) {
	fields := strings.Fields(strings.ToLower(text))
	if len(fields) != 2 {
		return w, fmt.Errorf("%q must be days and hours, such as “mon-fri 20:00-08:00”", text)
	}
	if w.Days, err = parseDays(fields[0]); err != nil {
		return w, err
	}
	from, to, cut := strings.Cut(fields[1], "-")
	if !cut {
		return w, fmt.Errorf("%q must be a start and an end, such as 20:00-08:00", fields[1])
	}
	if w.From, err = parseClock(from); err != nil {
		return w, err
	}
	if to == "24:00" { // midnight, as people write an end
		to = "00:00"
	}
	w.To, err = parseClock(to)
	return w, err
}

func parseClock(text string) (string, error) {
	at, err := time.Parse("15:04", text)
	if err != nil {
		return "", fmt.Errorf("%q must be a time of day from 00:00 to 23:59", text)
	}
	return at.Format("15:04"), nil
}

// parseDays parses “mon,wed”, “fri-mon” or “daily” into distinct days.
func parseDays(text string) (days []int, err error) {
	if text == "daily" {
		text = "mon-sun"
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, to := slices.Index(dayNames, first), slices.Index(dayNames, last)
		if from < 0 || to < 0 {
			return nil, fmt.Errorf("%q must be days (mon, tue, wed, thu, fri, sat, sun), such as mon-fri or sat,sun, or daily", part)
		}
		days = append(days, from)
		for day := from; day != to; {
			day = (day + 1) % 7
			days = append(days, day)
		}
	}
	slices.Sort(days)
	return slices.Compact(days), nil
}

// windowWords formats a window in the syntax of parseWindow.
func windowWords(w models.Window) string {
	to := w.To
	if to == "00:00" {
		to = "24:00"
	}
	return daysWords(w.Days) + " " + w.From + "-" + to
}

// daysWords formats three or more consecutive days as a range.
func daysWords(days []int) string {
	if len(days) == 7 {
		return "daily"
	}
	var parts []string
	for i := 0; i < len(weekOrder); i++ {
		first := i
		for i < len(weekOrder) && slices.Contains(days, weekOrder[i]) {
			i++
		}
		switch run := weekOrder[first:i]; {
		case len(run) > 2:
			parts = append(parts, dayNames[run[0]]+"-"+dayNames[run[len(run)-1]])
		default:
			for _, day := range run {
				parts = append(parts, dayNames[day])
			}
		}
	}
	return strings.Join(parts, ",")
}

// parseIDs parses “1,2,7”; “all” is the empty list.
func parseIDs(text string) (ids []int64, err error) {
	if strings.EqualFold(strings.TrimSpace(text), all) {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		id, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil || id < 1 {
			return nil, fmt.Errorf("%q must be IDs such as 1,2, or %s", text, all)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// parseMinutes parses a duration of whole minutes.
func parseMinutes(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q must be a duration such as 30m or 1h", text)
	case d < 0 || d%time.Minute != 0:
		return 0, fmt.Errorf("%s must be whole minutes, 0 or more", text)
	}
	return int64(d / time.Minute), nil
}
