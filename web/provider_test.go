package web

import (
	"testing"
	"time"
)

func TestLentTo(t *testing.T) {
	v := ProviderView{Projects: []Choice{{ID: 3, Label: "vision"}}}
	is := func(want string) {
		t.Helper()
		if got := v.lentTo(t.Context()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	is("all")
	v.Chosen = true
	is("chosen ones, and none of yours")
	v.Facts.Terms.Projects = []int64{3}
	is("chosen ones, of yours: vision")
	v.Provider.Manage = true
	is("vision")
}

func TestProviderNotice(t *testing.T) {
	soon := ptr(now.Add(time.Hour))
	for _, c := range []struct {
		p    Provider
		want string
	}{
		{Provider{State: "online", Lends: true}, ""},
		{Provider{State: "online", Lends: true, Until: soon}, "Lends until"},
		{Provider{State: "online", Until: soon}, "Lends again at"},
		{Provider{State: "draining", Lends: true, Until: soon}, "Lends nothing new; what is held stays held."},
		{Provider{State: "recalled", RecallAt: soon}, "The shares here end at"},
		{Provider{State: "lost", RecallAt: soon, SeenAt: now}, "Shares are kept for when it comes back. Last heard of"},
	} {
		if got, _ := c.p.notice(t.Context()); got != c.want {
			t.Errorf("%+v: %q, want %q", c.p, got, c.want)
		}
	}
}
