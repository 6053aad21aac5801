package web

import (
	"context"
	"strings"

	"weir/models"
)

// SessionsView are the sessions of the reader.
type SessionsView struct {
	All     []models.Session
	Present string // hash of the one that shows them
}

// What browsers call themselves has the names of those that they stand in for, so the
// first that matches decides.
var (
	browserNames = [][2]string{{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"},
		{"FxiOS/", "Firefox"}, {"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}}
	systemNames = [][2]string{{"Windows", "Windows"}, {"Android", "Android"}, {"iPhone", "iOS"}, {"iPad", "iPadOS"},
		{"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}}
)

func firstIn(text string, names [][2]string) string {
	for _, n := range names {
		if strings.Contains(text, n[0]) {
			return n[1]
		}
	}
	return ""
}

// browserText says which browser a user agent is of, for people.
func browserText(ctx context.Context, userAgent string) string {
	browser, system := firstIn(userAgent, browserNames), firstIn(userAgent, systemNames)
	if browser == "" || system == "" {
		return T(ctx, "Unknown browser")
	}
	return T(ctx, "%s on %s", browser, system)
}

// ConfirmEndSession asks for confirmation before another session of the reader ends.
func ConfirmEndSession(ctx context.Context, s models.Session) ConfirmView {
	return ConfirmView{
		Title: models.Say("End the session of %s at %s?", browserText(ctx, s.UserAgent), s.Address),
		Consequences: []models.Text{models.Say("That browser is signed out, and notebooks that it has open close. Workspaces keep running."),
			models.Say("If you do not know it, change your password, and remove passkeys that you do not know.")},
		Button: models.Say("End session"),
		Action: "/account/sessions/" + number(s.ID()) + "/end",
		Back:   "/account",
	}
}

// ConfirmEndSessions asks for confirmation before all other sessions of the reader end.
func ConfirmEndSessions() ConfirmView {
	return ConfirmView{
		Title:        models.Say("End all your other sessions?"),
		Consequences: []models.Text{models.Say("All other browsers are signed out, and notebooks that they have open close. Workspaces keep running.")},
		Button:       models.Say("End sessions"),
		Action:       "/account/sessions/end",
		Back:         "/account",
	}
}
