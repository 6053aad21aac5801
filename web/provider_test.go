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
	is("selected projects, none of yours")
	v.Facts.Terms.Projects = []int64{3}
	is("selected projects, including yours: vision")
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
		{Provider{State: "online", Lends: true, Until: soon}, "Available until"},
		{Provider{State: "online", Until: soon}, "Available again at"},
		{Provider{State: "draining", Lends: true, Until: soon}, "No new shares are placed here. Existing shares are kept."},
		{Provider{State: "recalled", RecallAt: soon}, "Shares here end at"},
		{Provider{State: "lost", RecallAt: soon, SeenAt: now}, "Shares are kept until it reconnects. Last heartbeat:"},
	} {
		if got, _ := c.p.notification(t.Context()); got != c.want {
			t.Errorf("%+v: %q, want %q", c.p, got, c.want)
		}
	}
}
