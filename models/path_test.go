package models_test

import (
	"testing"

	"weir/models"
)

func TestLocalPath(t *testing.T) {
	for _, path := range []string{"/", "/projects/7?tab=roles#members", "/lab/tree/数据 1/a%20b.ipynb", "/login?next=https://evil.example", "/@evil.example", "/a//b"} {
		if got := models.LocalPath(path); got != path {
			t.Errorf("%q: %q", path, got)
		}
	}
	for _, path := range []string{"", "lab", "?x", "#x", ".", "..//evil.example", // relative to what redirects
		"https://evil.example", "https:/evil.example", "https:evil.example", "javascript:alert(1)", "data:text/html,x",
		"//", "//evil.example", "///evil.example", "////evil.example", "//user@evil.example/", "//?x", // another host
		`/\evil.example`, `\/evil.example`, `\\evil.example`, `/a\..\..\evil`, // browsers read \ as /
		"/\t/evil.example", "\t//evil.example", "/\n/evil.example", "/a\r\nSet-Cookie: a=b", "/a#\r\nSet-Cookie: a=b", "/a#\x7f", "/\x00", " //evil.example", // browsers drop these
		"/%2Fevil.example", "/%2f/evil.example", "/%zz"} {
		if got := models.LocalPath(path); got != "/" {
			t.Errorf("%q is local: %q", path, got)
		}
	}
}
