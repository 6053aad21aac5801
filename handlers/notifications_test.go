package handlers

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

func (w *world) tell(email, kind string) {
	w.Helper()
	storetest.InTx(w, w.store, func(q *store.Queries) error {
		u, err := q.UserByEmail(email)
		if err != nil {
			return err
		}
		return q.Notify([]int64{u.ID}, models.Notification{Kind: kind, Text: models.Say("The project %s has been created.", kind), Link: "/projects/1"})
	})
}

// What somebody is told stands on every page of theirs and in the API, until
// they have read it.
func TestInboxByPageAndProgram(t *testing.T) {
	w := newWorld(t)
	kim, eve := w.visitor("kim@example.org", false), w.visitor("zoe@example.org", false)
	token := w.token("kim@example.org")
	kim.shows(kim.page(200, "GET", "/notifications"), "No notifications yet.", "!Mark all as read")
	for _, kind := range []string{"one", "two", "three"} {
		w.tell("kim@example.org", kind)
	}
	kim.shows(kim.page(200, "GET", "/environments"), `aria-label="Notifications: 3 unread"`, `hx-get="/notifications/bell"`, `data-topics="user:`)
	kim.shows(kim.page(200, "GET", "/notifications"), "The project one has been created.", "Mark all as read", "#bell:outerHTML", `!hx-get="/notifications/bell"`)
	kim.shows(kim.page(200, "GET", "/notifications/bell"), "Notifications: 3 unread", "!<html")
	if n := w.get(token, "/notifications/unread").body["unread"]; n != 3.0 {
		t.Errorf("%v unread", n)
	}
	list := w.get(token, "/notifications?limit=2")
	items := list.body["items"].([]any)
	newest := items[0].(map[string]any)
	if len(items) != 2 || newest["kind"] != "three" || newest["path"] != "/projects/1" || list.body["next_cursor"] == nil {
		t.Fatalf("%s", list.raw)
	}
	at := fmt.Sprintf("/notifications/%.0f", newest["id"])
	eve.page(404, "GET", at)
	eve.page(404, "POST", at+"/read")
	w.want(404, w.member, "POST", at+"/read", "")
	kim.page(303, "GET", at) // to the project
	if read := w.want(200, token, "POST", at+"/read", ""); read.body["read_at"] == nil {
		t.Errorf("not read: %s", read.raw)
	}
	kim.page(303, "POST", "/notifications/read", "up_to", fmt.Sprintf("%.0f", newest["id"].(float64)-2))
	kim.shows(kim.page(200, "GET", "/notifications"), "Notifications: 1 unread", "All notifications marked as read.")
	kim.page(422, "POST", "/notifications/read", "up_to", "x")
	w.want(204, token, "POST", "/notifications/read", "")
	kim.shows(kim.page(200, "GET", "/account"), `aria-label="Notifications"`, "Email is not configured.", "!Email notifications")
}

// The bell's topic reaches the page at once.
func TestBellIsLive(t *testing.T) {
	w := newWorld(t)
	server := w.serve()
	actor := w.get(w.member, "/me").body["id"].(float64)
	stream := openEvents(t, server, w.member, url.Values{"topic": {fmt.Sprintf("user:%.0f", actor)}}.Encode())
	w.tell("ann@example.org", "one")
	if topic := nextEvent(t, bufio.NewReader(stream.Body)); topic != fmt.Sprintf("user:%.0f", actor) {
		t.Errorf("heard of %q", topic)
	}
}

func TestMailPreference(t *testing.T) {
	w := newWorld(t)
	w.store.Mail = true
	kim := w.visitor("kim@example.org", false)
	token := w.token("kim@example.org")
	want := func(byMail bool, language string) {
		t.Helper()
		if p := w.get(token, "/me/notification-preferences").body; p["by_mail"] != byMail || p["language"] != language {
			t.Errorf("%v, want %t %s", p, byMail, language)
		}
	}
	want(true, "en")
	kim.shows(kim.page(200, "GET", "/account"), "Email notifications", `name="by_mail" value="1" checked`)
	kim.page(303, "POST", "/account/notifications")
	want(false, "en")
	kim.page(303, "POST", "/language", "lang", "zh", "next", "/")
	want(false, "zh")
	w.want(200, token, "PUT", "/me/notification-preferences", `{"by_mail":true,"language":"en"}`)
	want(true, "en")
	w.want(422, token, "PUT", "/me/notification-preferences", `{"by_mail":true,"language":"fr"}`)
}

// Administrators manage webhooks by page and program alike; a secret is shown
// once, and nobody else sees anything.
func TestWebhooksByPageAndProgram(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.visitor("ada@example.org", true), w.visitor("bob@example.org", false)
	ada.shows(ada.page(200, "GET", "/webhooks"), "No webhooks yet.", "--smtp-url")
	ada.shows(ada.page(422, "POST", "/webhooks", "name", "chat", "url", "http://example.org"), "must start with https://", `value="http://example.org"`)
	page := ada.page(201, "POST", "/webhooks", "name", "chat", "url", "https://example.org/hook", "+events", "request.*", "+events", "workspace.failed", "enabled", "1")
	ada.shows(page, "whsec_", "It will not be shown again.")
	ada.shows(ada.page(200, "GET", "/webhooks"), "chat", "request.*", "!whsec_")
	ada.shows(ada.page(200, "GET", "/webhooks/1"), "!whsec_", "No deliveries.", "!two secrets", `data-topics="deliveries`)
	ada.shows(ada.page(200, "GET", "/webhooks/1"), `value="request.*" checked`, `value="workspace.failed" checked`, `value="workspace.idle">`, "!Others")
	ada.shows(ada.page(422, "POST", "/webhooks/1", "name", "", "url", "https://example.org/hook", "+events", "quota.nearly-used", "+events", "work*", "version", "1"),
		`value="quota.nearly-used" checked`, `value="work*" checked`, "Others", `value="request.*">`)
	got := w.get(w.admin, "/webhooks/1")
	if got.body["url"] != "https://example.org/hook" || strings.Contains(got.raw, "whsec_") || len(got.body["events"].([]any)) != 2 {
		t.Errorf("%s", got.raw)
	}
	ada.shows(ada.page(200, "GET", "/webhooks/1/rotate"), "24 hours")
	ada.shows(ada.page(200, "POST", "/webhooks/1/rotate"), "whsec_", "two secrets")
	if a := w.want(200, w.admin, "POST", "/webhooks/1/rotate", ""); !strings.HasPrefix(a.body["secret"].(string), "whsec_") {
		t.Errorf("%s", a.raw)
	}
	ada.page(303, "POST", "/webhooks/1/test")
	ada.shows(ada.page(200, "GET", "/webhooks/1?state=pending"), "queued", "attempts: 0")
	one := w.get(w.admin, "/deliveries?webhook_id=1").body["items"].([]any)[0].(map[string]any)
	if one["kind"] != "test" || one["state"] != "pending" || one["to"] != "chat" {
		t.Errorf("%v", one)
	}
	ada.page(303, "POST", "/deliveries/1/redeliver")
	w.want(200, w.admin, "POST", "/deliveries/1/redeliver", "")
	w.want(200, w.admin, "GET", "/deliveries/1", "")
	ada.page(303, "POST", "/webhooks/1/redeliver")
	ada.page(409, "POST", "/webhooks/mail-test")
	stale := w.want(412, w.admin, "PUT", "/webhooks/1", `{"name":"x","url":"https://example.org","enabled":false}`, "If-Match", `"1"`)
	w.problem(stale)
	ada.page(303, "POST", "/webhooks/1", "name", "chat", "url", "https://example.org/other")
	w.want(409, w.admin, "POST", "/webhooks/1/test", "")

	for _, path := range []string{"/webhooks", "/webhooks/new", "/webhooks/1", "/webhooks/1/delete", "/webhooks/1/rotate"} {
		bob.page(403, "GET", path)
	}
	for _, path := range []string{"/webhooks", "/webhooks/1", "/webhooks/1/delete", "/webhooks/1/rotate", "/webhooks/1/test", "/webhooks/1/redeliver", "/webhooks/mail-test", "/deliveries/1/redeliver"} {
		bob.page(403, "POST", path)
	}
	for _, path := range []string{"/webhooks", "/webhooks/1", "/deliveries", "/deliveries/1"} {
		w.problem(w.want(403, w.member, "GET", path, ""))
	}
	server := httptest.NewServer(w.app)
	t.Cleanup(server.Close)
	if res := openEvents(t, server, w.member, "topic=deliveries"); res.StatusCode != http.StatusNotFound {
		t.Errorf("a member follows deliveries: %d", res.StatusCode)
	}
	ada.shows(ada.page(200, "GET", "/webhooks/1/delete"), "Delete webhook chat?")
	ada.page(303, "POST", "/webhooks/1/delete")
	ada.page(404, "GET", "/webhooks/1")
	w.want(404, w.admin, "DELETE", "/webhooks/1", "")
}
