package web

import (
	"testing"
	"time"

	"weir/models"
)

func TestExtensionInWords(t *testing.T) {
	ctx := With(t.Context(), Page{Now: now})
	e := models.Extension{Kind: models.RequestPeriod, Project: "vision"}
	for _, c := range []struct {
		kind string
		left time.Duration
		want string
	}{
		{models.RequestPeriod, 6*24*time.Hour + time.Hour, "Project vision ends in 6 days, on "},
		{models.RequestPeriod, 90 * time.Minute, "Project vision ends in 1\u00a0h 30\u00a0min, on "},
		{models.RequestPeriod, 0, "Project vision ended on "},
		{models.RequestDeadline, time.Minute, "Your membership in vision ends in 1\u00a0min, on "},
		{models.RequestDeadline, -time.Minute, "Your membership in vision ended on "},
	} {
		e.Kind, e.EndsAt = c.kind, now.Add(c.left)
		if got := extensionText(ctx, e); got != c.want+models.EndMoment(e.EndsAt).String()+"." {
			t.Errorf("%s, %s before: %q", c.kind, c.left, got)
		}
	}
}
