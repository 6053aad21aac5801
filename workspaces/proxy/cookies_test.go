package proxy

import (
	"net/http"
	"slices"
	"testing"
)

func TestCookiesUpstream(t *testing.T) {
	names := reserve([]string{"weir_session", "__Host-session", "Portal"})
	for _, c := range []struct {
		name, want string
		in         []string
	}{
		{"others stay as written", `a="1,2"; b; _xsrf=2|x|y`, []string{`a="1,2"; b; _xsrf=2|x|y`}},
		{"visit goes", "a=1", []string{"weir_visit=s; a=1"}},
		{"every one goes", "a=1", []string{"weir_visit=s; a=1; weir_visit=t"}},
		{"over several lines", "a=1; b=2", []string{"a=1; weir_visit=s", "__Host-weir_visit=t; b=2"}},
		{"portal goes", "a=1", []string{"weir_session=s; a=1; __Host-session=t"}},
		{"portal under a listed name", "a=1", []string{"portal=s; a=1; PORTAL=t; __Host-portal=u; __Secure-portal=v"}},
		{"nothing left", "", []string{"weir_visit=s"}},
		{"spaces and case", "a=1", []string{"a=1;weir_visit =s;  WEIR_VISIT=t;; __host-Weir_session=u"}},
		{"within quotes, as notebooks cut", `a="x; y"`, []string{`a="x; weir_visit=s; y"`}},
		{"bare name", "a=1", []string{"weir_visit; a=1"}},
		{"similar names stay", "weir_visitor=1; myweir_visit=2", []string{"weir_visitor=1; myweir_visit=2"}},
	} {
		h := http.Header{"Cookie": c.in}
		names.stripRequest(h)
		if got := h.Get("Cookie"); got != c.want || len(h["Cookie"]) > 1 {
			t.Errorf("%s: %q, want %q", c.name, h["Cookie"], c.want)
		}
	}
}

func TestCookiesDownstream(t *testing.T) {
	names := reserve([]string{"weir_session", "Portal"})
	for _, c := range []struct{ name, in, want string }{
		{"own", "_xsrf=2|x; Path=/", "_xsrf=2|x; Path=/"},
		{"expiry keeps its comma", "a=1; expires=Sat, 28 Nov 2026 20:00:00 GMT; HttpOnly", "a=1; expires=Sat, 28 Nov 2026 20:00:00 GMT; HttpOnly"},
		{"domain", "a=1; Domain=localhost; Path=/", "a=1; Path=/"},
		{"domain, oddly", "a=1;path=/;\tDOMAIN =x", ""},
		{"domain, spaced", "a=1;path=/; dOmAiN =x; domain", "a=1; path=/"},
		{"visit", "weir_visit=mine; Path=/", ""},
		{"visit, spaced", " weir_visit =mine", ""},
		{"visit, case", "Weir_Visit=mine", ""},
		{"visit, host", "__Host-weir_visit=mine; Secure; Path=/", ""},
		{"weir, secure", "__SECURE-weir_else=mine; Secure", ""},
		{"portal", "weir_session=x", ""},
		{"portal, host", "__Host-weir_session=x; Secure; Path=/", ""},
		{"portal under a listed name", "portal=x", ""},
		{"portal under a listed name, host", "__Host-Portal=x; Secure; Path=/", ""},
		{"no name", "=weir_visit=x", ""},
		{"no equals sign", "weir_visit", ""},
		{"control character", "weir_visit\x00=x", ""},
		{"host prefix of their own", "__Host-mine=1; Secure; Path=/", "__Host-mine=1; Secure; Path=/"},
	} {
		h := http.Header{"Set-Cookie": {c.in, "last=1"}}
		names.filterResponse(h)
		want := []string{"last=1"}
		if c.want != "" {
			want = []string{c.want, "last=1"}
		}
		if !slices.Equal(h["Set-Cookie"], want) {
			t.Errorf("%s: %q, want %q", c.name, h["Set-Cookie"], want)
		}
	}
}
