package models

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestOutgoingIsCheckedAndNormalized(t *testing.T) {
	for _, c := range []struct {
		access OutgoingAccess
		hosts  string
		want   string // the hosts, or what the problem says
	}{
		{"", "", ""},
		{"all", "", ""},
		{"none", "", ""},
		{"some", "", "must be one of all, none, listed"},
		{"none", "example.org", "only where listed hosts are allowed"},
		{"listed", "", "at least one host"},
		{"listed", " PyPI.org 192.0.2.7 192.0.2.0/24 storage pypi.org", "192.0.2.0/24 192.0.2.7 pypi.org storage"},
		{"listed", "10.0.0.0/8 0.0.0.0/0 3com.example", "0.0.0.0/0 10.0.0.0/8 3com.example"},
		{"listed", "192.0.2.1/24", "which is 192.0.2.0/24"},
		{"listed", "10.0.0.300", "not a name"},
		{"listed", "10.0.0", "not a name"},
		{"listed", "a..b", "not a name"},
		{"listed", "-a.example", "not a name"},
		{"listed", "example-", "not a name"},
		{"listed", "-a", "not a name"},
		{"listed", "a.-b", "not a name"},
		{"listed", "a.example.", "not a name"},
		{"listed", "a." + strings.Repeat("b", 64), "not a name"},
		{"listed", "a\u0000.example", "not a name"},
		{"listed", "https://pypi.org/simple", "not a name"},
		{"listed", "*.example.org", "not a name"},
		{"listed", "pypi.org:443", "not a name"},
		{"listed", "2001:db8::/32", "not a name"},
		{"listed", "::1", "not a name"},
		{"listed", strings.Repeat("a", 64) + ".example", "not a name"},
		{"listed", strings.Repeat("a.", 130) + "example", "not a name"},
		{"listed", "127.0.0.1", "never reachable"},
		{"listed", "169.254.169.254", "never reachable"},
		{"listed", "168.63.129.16/32", "never reachable"},
		{"listed", "224.0.0.0/4", "never reachable"},
		{"listed", strings.Repeat("a.example ", 65), "at most 64 hosts; has 65"},
	} {
		o, p := Outgoing{Access: c.access, Hosts: strings.Fields(c.hosts)}, Problems{}
		o.Check("outgoing", &p)
		got := strings.Join(o.Hosts, " ")
		if len(p) > 0 {
			got = p[0].Reason.String()
		}
		if !strings.Contains(got, c.want) || len(p) == 0 && got != c.want {
			t.Errorf("%s %q: %q instead of %q", c.access, c.hosts, got, c.want)
		}
		if again := (Outgoing{o.Access, slices.Clone(o.Hosts)}); len(p) == 0 {
			if again.Check("outgoing", &p); len(p) > 0 || !again.Equal(o) || o.Access == "" {
				t.Errorf("%+v becomes %+v, %v", o, again, p)
			}
		}
	}
}

func TestOutgoingIsSplit(t *testing.T) {
	networks, names := Outgoing{Hosts: []string{"192.0.2.0/24", "192.0.2.7", "pypi.org"}}.Split()
	want := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.0.2.7/32")}
	if !slices.Equal(networks, want) || !slices.Equal(names, []string{"pypi.org"}) {
		t.Errorf("%v and %v", networks, names)
	}
}
