package e2e

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/chromedp/cdproto/network"
)

// TestLanguages holds every page to the reader's language, which the browser
// asks for or the person chooses.
func TestLanguages(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:2"})
	english := readCatalog(t)

	stranger := chromium.person(t, s.url).tab()
	stranger.goTo("/signin")
	if found := stranger.englishOn(english); len(found) < 5 {
		t.Errorf("of the English page only %q is taken for English", found)
	}
	stranger.acceptLanguage("zh-CN,zh;q=0.9,en;q=0.5")
	stranger.inChinese(english, s.setupLink(), "/setup?token=used", "/signin", "/api/docs")
	stranger.goTo("/signin")
	submitEmpty(stranger)
	stranger.allChinese(english, "a refused sign-in")
	wang := populate(s)

	operator := chromium.person(t, s.url).tab()
	operator.acceptLanguage("zh-CN")
	operator.signInChinese("operator@example.org")
	for _, v := range operatorVisits() {
		operator.goTo(v.path)
		if v.then != nil && v.path != "/projects/1" {
			v.then(operator)
		}
		operator.allChinese(english, v.path)
	}

	member := chromium.person(t, s.url).tab()
	member.acceptLanguage("zh-TW")
	member.signInChinese(wang.Email)
	for _, v := range memberVisits() {
		member.inChinese(english, v.path)
	}
	choosesLanguage(member)
	for _, b := range []*tab{stranger, operator, member} {
		b.watch.clean()
	}
}

func (b *tab) acceptLanguage(value string) {
	b.t.Helper()
	call(b, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": value}})
}

func (b *tab) signInChinese(email string) {
	b.t.Helper()
	b.goTo("/signin")
	b.fill("邮箱", email)
	b.fill("密码", password)
	b.press("登录")
	b.at("/")
}

// choosesLanguage changes the language on the account page, and back by the
// switch in the navigation.
func choosesLanguage(b *tab) {
	b.t.Helper()
	b.goTo("/account")
	b.until("Chinese", `document.documentElement.lang === "zh-CN"`)
	eval[bool](b, `document.querySelector("main select[name=lang]").value = "en"; true`)
	b.pressAt("save", `document.querySelector("main form[action='/language'] button")`)
	b.until("English", `document.documentElement.lang === "en"`)
	b.sees("Password")
	b.goTo("/pool")
	b.sees("GPU utilization")
	b.press("中文")
	b.at("/pool")
	b.until("Chinese", `document.documentElement.lang === "zh-CN"`)
}

// phrase is an English sentence of the catalog as it would stand on a page.
type phrase struct {
	start   string // before what is filled in; comparing it first saves most of the matching
	pattern *regexp.Regexp
}

func (p phrase) matches(text string) bool {
	return strings.HasPrefix(text, p.start) && p.pattern.MatchString(text)
}

var verb = regexp.MustCompile(`%(?:\\\[\d+\\\])?[a-z]`)

// readCatalog reads the sentences that have a translation of their own. One
// that consists of little more than what is filled in proves nothing.
func readCatalog(t *testing.T) (all []phrase) {
	t.Helper()
	english, chinese := map[string]any{}, map[string]string{}
	for name, into := range map[string]any{"en": &english, "zh": &chinese} {
		raw, err := os.ReadFile("../models/catalog/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatal(err)
		}
	}
	for key, wording := range english {
		forms := []any{wording}
		if counted, ok := wording.(map[string]any); ok {
			forms = []any{counted["one"], counted["other"]}
		}
		for _, form := range forms {
			text := form.(string)
			pattern := verb.ReplaceAllString(regexp.QuoteMeta(text), ".+")
			letters := strings.Count(strings.Map(onlyLetters, strings.ReplaceAll(pattern, ".+", "")), "x")
			if text != chinese[key] && letters > 3 && (letters > 8 || !strings.Contains(pattern, ".+")) {
				start, _, _ := strings.Cut(text, "%")
				all = append(all, phrase{start, regexp.MustCompile("^" + pattern + "$")})
			}
		}
	}
	if len(all) < 200 {
		t.Fatalf("the catalog has %d sentences", len(all))
	}
	return all
}

func onlyLetters(r rune) rune {
	if unicode.IsLetter(r) {
		return 'x'
	}
	return -1
}

func (b *tab) inChinese(english []phrase, paths ...string) {
	b.t.Helper()
	for _, path := range paths {
		b.goTo(path)
		b.allChinese(english, path)
	}
}

// englishOn lists the sentences of the catalog that a page says in English,
// seen or read aloud. What stands in code or was typed by people is as it is.
func (b *tab) englishOn(english []phrase) (found []string) {
	b.t.Helper()
	said := eval[[]string](b, `(() => { const said = [document.title.replace(/ · Weir$/, "")];
		const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		while (walk.nextNode()) if (!walk.currentNode.parentElement.closest("script, code, pre, .mono, [lang]:not(html), select[name=lang]")) said.push(walk.currentNode.data);
		for (const e of document.querySelectorAll("*")) for (const a of ["aria-label", "placeholder", "title", "alt"]) if (e.hasAttribute(a)) said.push(e.getAttribute(a));
		return said.map((s) => s.trim()).filter((s) => /[A-Za-z]{2}/.test(s)); })()`)
	for _, text := range said {
		if slices.ContainsFunc(english, func(p phrase) bool { return p.matches(text) }) {
			found = append(found, text)
		}
	}
	return found
}

func (b *tab) allChinese(english []phrase, name string) {
	b.t.Helper()
	if lang := eval[string](b, "document.documentElement.lang"); lang != "zh-CN" {
		b.t.Errorf("%s: the page's language is %q", name, lang)
	}
	for _, text := range b.englishOn(english) {
		b.t.Errorf("%s says in English: %q", name, text)
	}
}
