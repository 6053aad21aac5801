package web

import (
	"context"
	"strconv"
	"strings"

	"weir/models"
)

// T translates an English sentence to the page's language.
func T(ctx context.Context, format string, args ...any) string {
	return keepUnits(models.Render(From(ctx).Lang, format, args...))
}

// TT renders a text in the page's language.
func TT(ctx context.Context, t models.Text) string { return keepUnits(t.In(From(ctx).Lang)) }

// Negotiate selects the language of a page: the one in the cookie, else the most
// preferred of those available, else English.
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
