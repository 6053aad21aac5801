package docs

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Hit is a section that contains all words of a search.
type Hit struct {
	Page    Page
	Title   string // of the section
	Address string // of the section
	Excerpt string
}

const (
	maxHits    = 20
	maxExcerpt = 200 // bytes around the first word
	maxQuery   = 200 // bytes
	maxWords   = 8
)

// Search returns the sections with all words of the query, the best first: words in the
// title of a page or a section count more. Each page is searched in the language in
// which it is shown. Of a long query, the beginning is searched for.
func Search(query, lang string) (hits []Hit) {
	words := wordsOf(query)
	if len(words) == 0 {
		return nil
	}
	scores := map[string]int{}
	for _, g := range Contents(lang) {
		for _, listed := range g.Pages {
			p, _ := Find(listed.Name, lang)
			for _, s := range p.sections {
				if score := s.score(words, p.Title); score > 0 {
					h := Hit{Page: p, Title: s.title, Address: p.Address() + "#" + s.anchor, Excerpt: s.excerpt(words)}
					scores[h.Address] = score
					hits = append(hits, h)
				}
			}
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(scores[b.Address], scores[a.Address]) })
	return hits[:min(len(hits), maxHits)]
}

// wordsOf are the different words of a query.
func wordsOf(query string) (words []string) {
	for w := range strings.FieldsSeq(strings.ToLower(query[:min(len(query), maxQuery)])) {
		if len(words) < maxWords && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words
}

func (s section) score(words []string, page string) (score int) {
	title := strings.ToLower(page + " " + s.title)
	for _, w := range words {
		found := 10*strings.Count(title, w) + min(strings.Count(s.lower, w), 5)
		if found == 0 {
			return 0
		}
		score += found
	}
	return score
}

// excerpt is the text around the first word that is in it.
func (s section) excerpt(words []string) string {
	lower := s.lower
	if len(lower) != len(s.text) { // positions differ
		lower = s.text
	}
	at := len(lower)
	for _, w := range words {
		if i := strings.Index(lower, w); i >= 0 {
			at = min(at, i)
		}
	}
	if at == len(lower) {
		at = 0
	}
	from, to := max(at-maxExcerpt/2, 0), min(at+maxExcerpt, len(s.text))
	for from > 0 && !utf8.RuneStart(s.text[from]) {
		from--
	}
	for to < len(s.text) && !utf8.RuneStart(s.text[to]) {
		to++
	}
	excerpt := strings.TrimSpace(s.text[from:to])
	if from > 0 {
		excerpt = "…" + excerpt
	}
	if to < len(s.text) {
		excerpt += "…"
	}
	return excerpt
}
