package web

import (
	"testing"
	"time"

	"weir/models"
)

func TestExtensionInWords(t *testing.T) {
	ctx := With(t.Context(), Page{Now: now})
	e := models.Extension{Kind: models.AskForPeriod, Project: "vision"}
	for _, c := range []struct {
		kind string
		left time.Duration
		want string
	}{
		{models.AskForPeriod, 6*24*time.Hour + time.Hour, "The project vision ends in 6 days, on "},
		{models.AskForPeriod, 90 * time.Minute, "The project vision ends in 1 h 30 min, on "},
		{models.AskForPeriod, 0, "The project vision ended on "},
		{models.AskForDeadline, time.Minute, "Your participation in vision ends in 1 min, on "},
		{models.AskForDeadline, -time.Minute, "Your participation in vision ended on "},
	} {
		e.Kind, e.EndsAt = c.kind, now.Add(c.left)
		if got := extensionText(ctx, e); got != c.want+models.Moment(e.EndsAt)+"." {
			t.Errorf("%s, %s before: %q", c.kind, c.left, got)
		}
	}
}
