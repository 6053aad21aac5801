package web

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/models"
)

// The browser keeps the time until an end current.
func TestExtensionInWords(t *testing.T) {
	tags := regexp.MustCompile(`<[^>]*>`)
	e := models.Extension{Kind: models.RequestPeriod, Project: "vision"}
	for _, c := range []struct {
		kind string
		left time.Duration
		want string
	}{
		{models.RequestPeriod, 6*24*time.Hour + time.Hour, "Project vision ends in 6 days (%s)."},
		{models.RequestPeriod, 90 * time.Minute, "Project vision ends in 1\u00a0h 30\u00a0min (%s)."},
		{models.RequestPeriod, 0, "Project vision ended on %s."},
		{models.RequestDeadline, time.Minute, "Your membership in vision ends in 1\u00a0min (%s)."},
		{models.RequestDeadline, -time.Minute, "Your membership in vision ended on %s."},
	} {
		e.Kind, e.EndsAt = c.kind, now.Add(c.left)
		var page bytes.Buffer
		if err := extensions([]models.Extension{e}).Render(With(t.Context(), Page{Now: now}), &page); err != nil {
			t.Fatal(err)
		}
		if text := tags.ReplaceAllString(page.String(), ""); !strings.Contains(text, fmt.Sprintf(c.want, models.EndMoment(e.EndsAt))) {
			t.Errorf("%s, %s before: %q", c.kind, c.left, text)
		}
		ticks := strings.Contains(page.String(), `datetime="`+timestamp(e.EndsAt)+`" data-time="countdown"`)
		if ticks != (c.left > 0) {
			t.Errorf("%s, %s before: a countdown: %t", c.kind, c.left, ticks)
		}
	}
}
