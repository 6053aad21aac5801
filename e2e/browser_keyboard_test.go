package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"
)

// typist goes through pages by the Tab key alone, in one language.
type typist struct {
	*tab
	axe axe
	say map[string]string // from English; empty for English itself
}

// tr is an English sentence in the typist's language, filled in.
func (k typist) tr(english string, args ...any) string {
	format := english
	if len(k.say) > 0 {
		translation, ok := k.say[english]
		if !ok {
			k.t.Fatalf("the catalog has no %q", english)
		}
		format = translation
	}
	return fmt.Sprintf(format, args...)
}

// reach presses Tab until what js finds has the focus.
func (k typist) reach(what, js string) {
	k.t.Helper()
	k.until(what, "document.readyState === 'complete' && "+js)
	for range 200 {
		if eval[bool](k.tab, "document.activeElement === "+js) {
			return
		}
		k.keys("\t")
	}
	k.t.Fatalf("%s cannot be reached with the Tab key", what)
}

// follow presses Enter on the link or button of that name.
func (k typist) follow(name string) {
	k.t.Helper()
	k.reach("the button or link "+strconv.Quote(name), named(name))
	k.keys("\r")
}

// write types into the field with that label; its text is selected by the
// Tab that leads there.
func (k typist) write(label, text string) {
	k.t.Helper()
	k.reach("the field "+strconv.Quote(label), labelled(label))
	k.keys(text)
}

// clean holds the page to axe-core, light and dark.
func (k typist) clean(name string) {
	k.t.Helper()
	k.axe.load(k.tab)
	for _, scheme := range schemes {
		k.scheme(scheme)
		check(k.tab, name+", "+scheme, rulesIn(scheme)...)
	}
	k.scheme("")
}

// signsIn begins the story at the sign-in page.
func (k typist) signsIn(email string) {
	k.t.Helper()
	k.goTo("/signin")
	k.write(k.tr("Email"), email)
	k.write(k.tr("Password"), password)
	k.keys("\r")
	k.at("/")
}

func readTranslations(t *testing.T) map[string]string {
	t.Helper()
	english, chinese, say := map[string]any{}, map[string]string{}, map[string]string{}
	for name, into := range map[string]any{"en": &english, "zh": &chinese} {
		raw, err := os.ReadFile("../models/catalog/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatal(err)
		}
	}
	for key, sentence := range english {
		if text, ok := sentence.(string); ok {
			say[text] = chinese[key]
		}
	}
	return say
}

// TestRequestByKeyboard is the whole story of a request without a mouse, in
// both languages: a member asks with a mistake in the form, mends it, asks for
// something else and withdraws that; a manager approves with other numbers and
// refuses another one, first without the reason that this needs.
func TestRequestByKeyboard(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	for language, say := range map[string]map[string]string{"en": {}, "zh-CN": readTranslations(t)} {
		t.Run(language, func(t *testing.T) {
			s := newServer(t, options{gpus: "h100:4"})
			team := s.teamWithin("Speech", share.times(4), share, "wang")
			admin := s.api(s.admin())
			at := fmt.Sprintf("/projects/%d", team.Project)
			var lead, user id
			admin.must("POST", at+"/roles", map[string]any{"name": "lead", "permission": "manager", "limit": resources{}}, &lead)
			admin.must("POST", "/users", map[string]any{"email": "mei@example.org", "name": "Mei", "password": password}, &user)
			admin.must("POST", at+"/members", map[string]any{"email": "mei@example.org", "role_id": lead.ID}, nil)
			typing := func(email string) typist {
				k := typist{chromium.person(t, s.url).tab(), readAxe(t), say}
				k.t = t
				k.acceptLanguage(language)
				k.signsIn(email)
				return k
			}
			wang, mei := typing("wang@example.org"), typing("mei@example.org")
			asks(wang)
			decides(mei)
			isTold(wang)
			for _, k := range []typist{wang, mei} {
				k.watch.clean()
			}
		})
	}
}

func asks(k typist) {
	k.t.Helper()
	k.follow("Speech")
	k.at(`/projects/\d+`)
	k.clean("the project")
	k.follow(k.tr("Request a higher limit"))
	k.at("/requests/new")
	k.write(k.tr("GPU cores"), "150")
	k.clean("the form")
	k.follow(k.tr("Submit request"))
	// The browser itself leads to what is missing.
	k.until("the focus on the reason", "document.activeElement === "+labelled(k.tr("Reason"))+" && document.activeElement.matches(':invalid')")
	k.keys("two runs at once")
	k.follow(k.tr("Submit request"))
	k.at(`/requests/\d+`)
	k.sees(k.tr("Request submitted: %s. You will be notified of the decision.", k.tr("higher limit in %s", "Speech")))
	k.clean("the request")
	for _, reason := range []string{"a mistake", "even more"} {
		k.goTo("/requests/new?kind=quota&project_id=1")
		k.write(k.tr("GPU cores"), "1200")
		k.write(k.tr("Reason"), reason)
		k.follow(k.tr("Submit request"))
		k.at(`/requests/\d+`)
		if reason == "a mistake" {
			k.follow(k.tr("Withdraw"))
			k.sees(k.tr("Withdraw this request?"))
			k.follow(k.tr("Withdraw request"))
			k.sees(k.tr("withdrawn"))
		}
	}
	k.goTo("/requests/new?kind=limit&project_id=1")
	k.write(k.tr("GPU cores"), "160")
	k.write(k.tr("Reason"), "a third run")
	k.follow(k.tr("Submit request"))
	k.at(`/requests/\d+`)
}

func decides(k typist) {
	k.t.Helper()
	k.goTo("/requests")
	k.clean("the inbox")
	summary := k.tr("higher limit in %s", "Speech")
	if len(k.say) == 0 {
		summary = "Higher limit in Speech"
	}
	k.follow(summary)
	k.at(`/requests/\d+`)
	k.clean("the decision")
	k.write(k.tr("GPU cores"), "120")
	k.follow(k.tr("Approve"))
	k.at("/requests")
	k.follow(summary)
	k.at(`/requests/\d+`)
	k.follow(k.tr("Refuse"))
	k.until("the refusal without a reason", `document.querySelector("[aria-invalid=true]")`)
	k.write(k.tr("Reason"), "one run is enough")
	k.follow(k.tr("Refuse"))
	k.at("/requests")
}

func isTold(k typist) {
	k.t.Helper()
	k.goTo("/notifications")
	k.sees(k.tr("Your request was approved with changes: %s.", k.tr("higher limit in %s", "Speech")))
	k.clean("the notifications")
}
