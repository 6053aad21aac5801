package web

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"weir/models"
)

// Languages of the pages.
const (
	English = "en"
	Chinese = "zh"
)

//go:embed catalogue/zh.json
var zhJSON []byte

// catalogue maps English formats to Chinese ones.
var catalogue = mustCatalogue(zhJSON)

func mustCatalogue(b []byte) map[string]string {
	m := map[string]string{}
	if err := json.Unmarshal(b, &m); err != nil {
		panic("web: catalogue: " + err.Error())
	}
	return m
}

// translator turns English formats into those of a language. What the
// catalogue does not know stays English.
func translator(lang string) func(string) string {
	if lang != Chinese {
		return func(s string) string { return s }
	}
	return func(s string) string {
		if t, ok := catalogue[s]; ok {
			return t
		}
		return s
	}
}

// T says an English sentence in the page's language.
func T(ctx context.Context, format string, args ...any) string {
	s := translator(From(ctx).Lang)(format)
	if len(args) == 0 {
		return s
	}
	return fmt.Sprintf(s, args...)
}

// TT says a text in the page's language.
func TT(ctx context.Context, t models.Text) string {
	if t.Empty() {
		return ""
	}
	return t.Render(translator(From(ctx).Lang))
}

// Negotiate chooses the language of a page: what the person chose before,
// else the most wanted one that there is, else English.
func Negotiate(acceptLanguage, cookie string) string {
	if cookie == English || cookie == Chinese {
		return cookie
	}
	best, bestQ := English, 0.0
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
		if (primary == English || primary == Chinese) && q > bestQ {
			best, bestQ = primary, q
		}
	}
	return best
}
