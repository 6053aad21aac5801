package models

import (
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// CheckName accepts 1 to 100 visible characters; it returns the name without
// surrounding space.
func CheckName(field, name string, p *Problems) string {
	name = strings.TrimSpace(name)
	switch {
	case name == "":
		p.Add(field, "must not be empty")
	case utf8.RuneCountInString(name) > 100:
		p.Add(field, "must be at most %d characters; has %d", 100, utf8.RuneCountInString(name))
	default:
		checkVisible(field, name, p)
	}
	return name
}

// CheckText accepts at most limit characters, line breaks included.
func CheckText(field, text string, limit int, p *Problems) string {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	if n := utf8.RuneCountInString(text); n > limit {
		p.Add(field, "must be at most %d characters; has %d", limit, n)
	} else {
		checkVisible(field, strings.ReplaceAll(text, "\n", ""), p)
	}
	return text
}

// CheckTimeZone returns a time zone by its name, such as Europe/Berlin; UTC if it is empty or
// not known.
func CheckTimeZone(field, name string, p *Problems) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		p.Add(field, "is not a known time zone; use one such as Europe/Berlin")
		return time.UTC
	}
	return zone
}

// checkVisible rejects control and invisible formatting characters, which could
// make different names look the same.
func checkVisible(field, s string, p *Problems) {
	if !utf8.ValidString(s) {
		p.Add(field, "must be valid UTF-8")
		return
	}
	for _, r := range s {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			p.Add(field, "must not contain control or invisible characters")
			return
		}
	}
}

// CheckEmail accepts one bare address and returns it in lower case.
func CheckEmail(field, email string, p *Problems) string {
	email = strings.ToLower(strings.TrimSpace(email))
	a, err := mail.ParseAddress(email)
	switch {
	case email == "":
		p.Add(field, "must not be empty")
	case len(email) > 254:
		p.Add(field, "must be at most %d characters; has %d", 254, len(email))
	case err != nil || a.Address != email:
		p.Add(field, "must be an email address such as name@example.org")
	default:
		checkVisible(field, email, p)
	}
	return email
}

// CheckScopes refuses unknown scopes, and returns the others once and in display
// order.
func CheckScopes(field string, scopes []TokenScope, p *Problems) []TokenScope {
	var sorted []TokenScope
	for _, s := range TokenScopes {
		if slices.Contains(scopes, s) {
			sorted = append(sorted, s)
		}
	}
	if slices.ContainsFunc(scopes, func(s TokenScope) bool { return !slices.Contains(TokenScopes, s) }) {
		p.Add(field, "must be read, launch, project or admin")
	}
	return sorted
}

// CheckYear rejects times that not every database can store.
func CheckYear(field string, t time.Time, p *Problems) {
	if t.Year() < 1970 || t.Year() > 9999 {
		p.Add(field, "must be between the years 1970 and 9999")
	}
}
