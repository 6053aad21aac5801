package config

import (
	"net/netip"
	"slices"
	"testing"
)

func TestParseProxies(t *testing.T) {
	got, err := parseProxies(" 10.1.2.3/8, 192.0.2.7,2001:db8::1 ,fd00::/8")
	var want []netip.Prefix
	for _, p := range []string{"10.0.0.0/8", "192.0.2.7/32", "2001:db8::1/128", "fd00::/8"} {
		want = append(want, netip.MustParsePrefix(p))
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := parseProxies(""); err != nil || got != nil {
		t.Errorf("nothing is %v, %v", got, err)
	}
	for _, text := range []string{"proxy.example.org", "10.0.0.0/33", "10.0.0.1:80", "fe80::1%eth0", "*"} {
		if got, err := parseProxies(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
