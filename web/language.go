package web

import (
	"context"
	"strconv"
	"strings"

	"weir/models"
)

// T says an English sentence in the page's language.
func T(ctx context.Context, format string, args ...any) string {
	return models.Render(From(ctx).Lang, format, args...)
}

// TT says a text in the page's language.
func TT(ctx context.Context, t models.Text) string { return t.In(From(ctx).Lang) }

// Negotiate chooses the language of a page: what the person chose before,
// else the most wanted one that there is, else English.
func Negotiate(acceptLanguage, cookie string) string {
	if cookie == models.English || cookie == models.Chinese {
		return cookie
	}
	best, bestQ := models.English, 0.0
	for part := range strings.SplitSeq(acceptLanguage, ",") {
		tag, params, _ := strings.Cut(part, ";")
		q := 1.0
		if _, v, ok := strings.Cut(params, "q="); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
			if err != nil {
				continue
			}
			q = f
		}
		primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		if (primary == models.English || primary == models.Chinese) && q > bestQ {
			best, bestQ = primary, q
		}
	}
	return best
}
