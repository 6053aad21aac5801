package config

import (
	"net/netip"
	"slices"
	"testing"
)

func TestParseProxies(t *testing.T) {
	got, err := listOf(parseProxy)(" 10.1.2.3/8, 192.0.2.7,2001:db8::1 ,fd00::/8")
	var want []netip.Prefix
	for _, p := range []string{"10.0.0.0/8", "192.0.2.7/32", "2001:db8::1/128", "fd00::/8"} {
		want = append(want, netip.MustParsePrefix(p))
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := listOf(parseProxy)(""); err != nil || got != nil {
		t.Errorf("nothing is %v, %v", got, err)
	}
	for _, text := range []string{"proxy.example.org", "10.0.0.0/33", "10.0.0.1:80", "fe80::1%eth0", "*"} {
		if got, err := listOf(parseProxy)(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestParseList(t *testing.T) {
	if got, _ := ParseList(" 3g.40gb, 4g.40gb,"); !slices.Equal(got, []string{"3g.40gb", "4g.40gb"}) {
		t.Errorf("got %q", got)
	}
	if got, _ := ParseList(""); got != nil {
		t.Errorf("nothing is taken for %q", got)
	}
}

func TestParseHost(t *testing.T) {
	for text, want := range map[string]string{"Weir.example.org": "weir.example.org", "weir_portal": "weir_portal", "weir": "weir", "a_b.lab": "a_b.lab"} {
		if got, err := parseHost(text); err != nil || got != want {
			t.Errorf("%q is %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"weir:8080", "http://weir", "weir/", "-weir", "weir.", "we ir", ""} {
		if got, err := parseHost(text); err == nil {
			t.Errorf("%q is %q", text, got)
		}
	}
}
