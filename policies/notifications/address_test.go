package notifications

import (
	"net/netip"
	"strings"
	"testing"

	"weir/models"
	"weir/models/store/storetest"
)

func TestMayReach(t *testing.T) {
	for text, want := range map[string]string{
		"93.184.216.34": "public", "2606:2800:220:1::1": "public", "::ffff:93.184.216.34": "public", "172.32.0.1": "public", "11.0.0.1": "public",
		"127.0.0.1": "private", "127.9.9.9": "private", "10.1.2.3": "private", "172.16.0.1": "private", "192.168.1.1": "private", "100.64.0.1": "private",
		"::1": "private", "fd12::1": "private", "::ffff:10.0.0.1": "private", "64:ff9b::10.0.0.1": "private", "2002:7f00:1::1": "private", "::127.0.0.1": "private",
		"169.254.169.254": "never", "::ffff:169.254.169.254": "never", "64:ff9b::a9fe:a9fe": "never", "fe80::1": "never", "fe80::1%eth0": "never", "0.0.0.0": "never", "::": "never",
		"224.0.0.1": "never", "255.255.255.255": "never", "ff02::1": "never", "100.100.100.200": "never", "168.63.129.16": "never", "fd00:ec2::254": "never",
	} {
		addr := netip.MustParseAddr(text)
		strict, open := checkAddress(addr, false) == nil, checkAddress(addr, true) == nil
		if strict != (want == "public") || open != (want != "never") {
			t.Errorf("%s: reached %t, with private ones %t; want %s", text, strict, open, want)
		}
	}
}

// The address is checked when it is dialled, whatever name led there.
func TestPrivateAddressesAreNotDialled(t *testing.T) {
	each(t, func(w *world) {
		r := newReceiver(w)
		w.webhook(strings.Replace(r.URL, "127.0.0.1", "localhost", 1))
		w.tell("one")
		strict := NewSender(func() SenderConfig { c := w.sender.SenderConfig; c.AllowPrivate = false; return c }())
		w.settle(strict)
		d := w.only()
		if d.State != models.DeliveryFailed || !strings.Contains(d.Problem.String(), "private network") || len(r.messages()) != 0 {
			w.Errorf("%+v; received %d", d.Delivery, len(r.messages()))
		}
	})
}

func TestWebhookInput(t *testing.T) {
	w := newWorld(t, storetest.Open(t, "sqlite"))
	w.service.AllowPrivate = false
	for _, c := range []struct {
		url, events, field string
	}{
		{"https://example.org/hook?token=x", "request.* workspace.failed", ""}, {"https://93.184.216.34", "", ""}, {"https://example.org", "project.created", "events"},
		{"", "", "url"}, {"http://example.org", "", "url"}, {"https://user:secret@example.org", "", "url"}, {"ftp://example.org", "", "url"},
		{"https://127.0.0.1", "", "url"}, {"https://[::1]:8443/", "", "url"}, {"https://169.254.169.254/latest", "", "url"}, {"example.org", "", "url"},
		{"https://example.org/" + strings.Repeat("x", 1000), "", "url"}, {"https://example.org", "Request", "events"}, {"https://example.org", "a..b", "events"},
	} {
		in := WebhookInput{Name: "x", URL: c.url, Events: strings.Fields(c.events)}
		err := w.service.check(&in)
		if c.field == "" && err != nil || c.field != "" && (err == nil || !strings.Contains(err.Error(), c.field+":")) {
			t.Errorf("%s %q: %v, want %q", c.url, c.events, err, c.field)
		}
	}
	hook := models.Webhook{Events: []string{"project.created", "request.*"}}
	for kind, want := range map[string]bool{"request.created": true, "request.a.b": true, "project.created": true, "project.deleted": false, "requests": false} {
		if hook.Subscribes(kind) != want {
			t.Errorf("%s: %t", kind, !want)
		}
	}
}
