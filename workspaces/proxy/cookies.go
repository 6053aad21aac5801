package proxy

import (
	"net/http"
	"strings"
)

const (
	visitCookie  = "weir_visit"
	hostPrefix   = "__Host-"
	securePrefix = "__Secure-"
)

// reservedCookies are the names of Weir's own cookies, in lower case. They are
// compared without case, because leaking a cookie is worse than dropping one.
type reservedCookies map[string]bool

func reserve(portal []string) reservedCookies {
	names := reservedCookies{visitCookie: true}
	for _, name := range portal {
		names[strings.ToLower(name)] = true
	}
	return names
}

func (names reservedCookies) contains(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	if names[name] {
		return true
	}
	for _, prefix := range []string{hostPrefix, securePrefix} {
		if rest, ok := strings.CutPrefix(name, strings.ToLower(prefix)); ok {
			return strings.HasPrefix(rest, "weir") || names[rest]
		}
	}
	return false
}

// stripRequest removes Weir's cookies from a request. It splits the header at every
// semicolon, as notebooks do: a stricter parser could miss a cookie that the
// notebook finds. The rest is unchanged.
func (names reservedCookies) stripRequest(h http.Header) {
	var pairs []string
	for _, line := range h["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			pair = strings.TrimSpace(pair)
			name, _, _ := strings.Cut(pair, "=")
			if pair != "" && !names.contains(name) {
				pairs = append(pairs, pair)
			}
		}
	}
	if len(pairs) == 0 {
		h.Del("Cookie")
		return
	}
	h.Set("Cookie", strings.Join(pairs, "; "))
}

// filterResponse restricts the cookies that a notebook sets to its own origin and
// to names that are not reserved.
func (names reservedCookies) filterResponse(h http.Header) {
	lines := h["Set-Cookie"]
	if len(lines) == 0 {
		return
	}
	h.Del("Set-Cookie")
	for _, line := range lines {
		pair, attributes, _ := strings.Cut(line, ";")
		name, _, named := strings.Cut(pair, "=")
		// Browsers differ on cookies without a name and on control characters.
		if !named || strings.TrimSpace(name) == "" || names.contains(name) || strings.ContainsFunc(line, isControl) {
			continue
		}
		h.Add("Set-Cookie", pair+withoutDomain(attributes))
	}
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func withoutDomain(attributes string) string {
	var out strings.Builder
	for attribute := range strings.SplitSeq(attributes, ";") {
		attribute = strings.TrimSpace(attribute)
		key, _, _ := strings.Cut(attribute, "=")
		if attribute != "" && !strings.EqualFold(strings.TrimSpace(key), "Domain") {
			out.WriteString("; " + attribute)
		}
	}
	return out.String()
}
