package web

import "weir/models"

// RequestsView lists requests.
type RequestsView struct {
	Filter  string // pending, decided or mine
	Rows    []models.RequestView
	Next    string // address of the next page, empty on the last
	Decides bool   // there are requests that the reader may decide
	Waiting int    // for the reader
}

// truncated cuts a reason for a list.
func truncated(text string) string {
	const most = 120
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
