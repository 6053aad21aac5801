package web

import (
	"context"
	"slices"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"weir/models"
)

func (v AskView) title(ctx context.Context) string {
	if v.Kind == "" {
		return T(ctx, "Ask for something")
	}
	return kindWord(ctx, v.Kind)
}

// needsProject tells whether a project has still to be chosen.
func (v AskView) needsProject() bool {
	return v.ProjectID == 0 && v.Kind != models.AskForProject && v.Kind != models.AskForJoin
}

// abridged cuts a reason for a list.
func abridged(text string) string {
	const most = 120
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// askedFact is one thing that is asked for, and what was decided of it.
type askedFact struct{ Label, Asked, Decided string }

// facts are what a request asks for, in words.
func (v RequestPageView) facts(ctx context.Context) (list []askedFact) {
	decided := v.Asked
	if v.Decided != nil {
		decided = *v.Decided
	}
	text := func(field, asked, decided string) {
		list = append(list, askedFact{fieldName(ctx, field), asked, decided})
	}
	switch a, d := v.Asked, decided; v.Kind {
	case models.AskForProject:
		text("name", a.Project.Name, d.Project.Name)
		text("ends_at", ending(ctx, a.Project.EndsAt), ending(ctx, d.Project.EndsAt))
	case models.AskForRole:
		text("name", a.Role.Name, d.Role.Name)
		text("permission", word(ctx, a.Role.Permission), word(ctx, d.Role.Permission))
		if a.Role.Mine {
			text("role_mine", yes(ctx, a.Role.Mine), yes(ctx, d.Role.Mine))
		}
	case models.AskForPeak:
		text("role_id", v.RoleName, v.RoleName)
	case models.AskForPeriod:
		text("ends_at", ending(ctx, a.Period.EndsAt), ending(ctx, d.Period.EndsAt))
	case models.AskForDeadline:
		text("until", ending(ctx, a.Deadline.Until), ending(ctx, d.Deadline.Until))
	case models.AskForJoin:
		text("until", ending(ctx, a.Join.Until), ending(ctx, d.Join.Until))
	}
	if v.vector() {
		other := decided.Amounts().Amounts()
		for i, a := range v.Asked.Amounts().Amounts() {
			text(a.Name, models.Quantity(a.Name, a.Value), models.Quantity(a.Name, other[i].Value))
		}
	}
	return list
}

func ending(ctx context.Context, t *time.Time) string {
	if t == nil {
		return T(ctx, "no end")
	}
	return day(*t)
}

// ratioField is the input of a percentage, called as its resource.
func ratioField(a models.Amount) field {
	return field{Label: a.Label, Hint: models.Say("Percent, such as 150."), Inputmode: "numeric", Required: true}
}

// askForMore is where to ask for a larger peak, when more is wanted than the
// own one allows.
func (v LaunchView) askForMore() string {
	project, err := strconv.ParseInt(v.Form.Value("project_id"), 10, 64)
	if err != nil && len(v.Projects) > 0 {
		project, err = strconv.ParseInt(v.Projects[0].Value, 10, 64)
	}
	if err != nil || !slices.ContainsFunc(v.Meters, Meter.Over) {
		return ""
	}
	return askPath(models.AskForPeak, project)
}

// capital begins a sentence.
func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}
