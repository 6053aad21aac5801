package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	browserdomain "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// patience is how long a page may take to show what is waited for, on a busy
// machine with two cores.
const patience = 3 * time.Minute

// chromium is the browser process of all tests; persons sign in in contexts of their own,
// which share nothing.
type chromium struct {
	ctx context.Context
	t   testing.TB
}

func startChromium(t testing.TB) *chromium {
	t.Helper()
	ctx, err := browser()
	if err != nil {
		t.Fatal(err)
	}
	return &chromium{ctx: ctx, t: t}
}

// endBrowser ends the browser, if one was started. It is called once, after all tests.
var endBrowser = func() {}

// browser starts the browser at its first call.
var browser = sync.OnceValues(func() (context.Context, error) {
	path, errPath := findChromium()
	self, errSelf := os.Executable()
	// Chromium leaves folders in TMPDIR. Paths of the sockets in them must be short.
	dir, errTemp := os.MkdirTemp(workDir, "b")
	profile, errProfile := os.MkdirTemp(workDir, "profile")
	if err := errors.Join(errPath, errSelf, errTemp, errProfile); err != nil {
		return nil, err
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(self), chromedp.Env("TMPDIR="+dir, browserVariable+"="+path), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(profile), chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-default-apps", true), chromedp.Flag("disable-extensions", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-backgrounding-occluded-windows", true),
		chromedp.Flag("disable-renderer-backgrounding", true), chromedp.Flag("disable-background-timer-throttling", true),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("password-store", "basic"),
		// The popups of the address bar would each take a renderer per window.
		chromedp.Flag("disable-features", "Translate,OptimizationHints,MediaRouter,"+
			"WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,OmniboxAimPopup"))
	// What fails is returned; the rest that chromedp would print is noise.
	ctx, cancel := chromedp.NewContext(alloc, chromedp.WithErrorf(func(string, ...any) {}))
	endBrowser = func() { cancel(); stop() }
	if err := chromedp.Do(ctx); err != nil {
		return nil, fmt.Errorf("chromium does not start: %w", err)
	}
	return ctx, nil
})

// findChromium prefers the variant without a user interface of its own, which takes half
// of the processor time for the same pages.
func findChromium() (string, error) {
	for _, name := range []string{"chromium-headless-shell", "chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no chromium on this machine; make test installs it")
}

// person is somebody at a browser of their own.
type person struct {
	t         testing.TB
	ctx       context.Context
	origin    string // of the portal
	watch     *watch
	downloads string // the folder in which downloaded files are saved
	clicks    int    // of the mouse
}

func (c *chromium) person(t testing.TB, origin string) *person {
	t.Helper()
	ctx, cancel := chromedp.NewContext(c.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &person{t: t, ctx: ctx, origin: origin, watch: &watch{t: t, origin: origin}, downloads: t.TempDir()}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("browser context: %v", err)
	}
	_, err := chromedp.CallBrowser(ctx, browserdomain.SetDownloadBehavior, browserdomain.SetDownloadBehaviorParams{
		Behavior: browserdomain.SetDownloadBehaviorBehaviorAllow, DownloadPath: p.downloads,
		BrowserContextID: chromedp.FromContext(ctx).BrowserContextID})
	if err != nil {
		t.Fatalf("downloads: %v", err)
	}
	return p
}

// tab is one page of a person's browser.
type tab struct {
	*person
	ctx context.Context
}

// tab opens an empty one.
func (p *person) tab() *tab {
	p.t.Helper()
	ctx, cancel := chromedp.NewContext(p.ctx)
	p.t.Cleanup(cancel)
	return p.attach(ctx)
}

func (p *person) attach(ctx context.Context) *tab {
	p.t.Helper()
	if err := chromedp.Do(ctx); err != nil {
		p.t.Fatalf("tab: %v", err)
	}
	b := &tab{person: p, ctx: ctx}
	if err := chromedp.Listen(ctx, p.watch.event); err != nil {
		p.t.Fatalf("tab: %v", err)
	}
	call(b, audits.Enable, cdp.Empty{})
	b.resize(1280, 900)
	return b
}

// opened is the tab that do opens, whose address holds part.
func (b *tab) opened(part string, do func()) *tab {
	b.t.Helper()
	own := chromedp.FromContext(b.ctx).Target.TargetID // tabs of other tests open others
	found := chromedp.WaitNewTarget(b.ctx, func(i *target.Info) bool { return i.OpenerID == own && strings.Contains(i.URL, part) })
	do()
	select {
	case id := <-found:
		ctx, cancel := chromedp.NewContext(b.person.ctx, chromedp.WithTargetID(id))
		b.t.Cleanup(cancel)
		return b.attach(ctx)
	case <-time.After(patience):
		b.t.Fatalf("no tab opened whose address holds %q", part)
		return nil
	}
}

// call sends a command of the DevTools protocol to the tab.
func call[P, R any](b *tab, cmd cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	result, err := chromedp.Call(ctx, cmd, params)
	if err != nil {
		b.t.Fatalf("%s: %v", cmd.Method, err)
	}
	return result
}

// eval runs JavaScript in the page. The page's policy does not apply to it.
func eval[T any](b *tab, js string) T {
	b.t.Helper()
	v, err := tryEval[T](b, js)
	if err != nil {
		b.t.Fatalf("%s: %v", firstLine(js), err)
	}
	return v
}

func tryEval[T any](b *tab, js string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// until waits for a condition in the page, across whatever pages the tab goes
// through meanwhile.
func (b *tab) until(what, js string) {
	b.t.Helper()
	deadline, pause := time.Now().Add(patience), 40*time.Millisecond
	for {
		ok, err := tryEval[bool](b, "!!("+js+")")
		if err == nil && ok {
			return
		}
		if time.Now().After(deadline) {
			text, _ := tryEval[string](b, `location.href + "\n" + (document.body?.innerText || "")`)
			dump(b.origin)
			b.t.Fatalf("waited in vain for %s (last error: %v); the page shows:\n%s", what, err, text)
		}
		time.Sleep(pause)
		pause = longer(pause)
	}
}

// goTo loads an address, whole or a path of the portal. A link that was pressed just
// before can still lead elsewhere, which aborts this; then it is loaded once more.
func (b *tab) goTo(address string) {
	b.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = b.origin + address
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	err := chromedp.Do(ctx, chromedp.Navigate(address))
	for try := 0; err != nil && try < 5 && strings.Contains(err.Error(), "net::ERR_ABORTED"); try++ {
		err = chromedp.Do(ctx, chromedp.Navigate(address))
	}
	if err != nil {
		b.t.Fatalf("%s: %v", address, err)
	}
}

// sees waits until the page shows a text.
func (b *tab) sees(text string) {
	b.t.Helper()
	b.until(strconv.Quote(text), `document.body && document.body.innerText.includes(`+strconv.Quote(text)+`)`)
}

// front brings the tab before the others of its window. Behind them a page
// does not listen to events; in front it catches up.
func (b *tab) front() {
	b.t.Helper()
	call(b, page.BringToFront, cdp.Empty{})
	b.until("the tab in front", `document.visibilityState === "visible"`)
}

// at waits until the tab has loaded a page of the portal.
func (b *tab) at(path string) {
	b.t.Helper()
	b.until("the page "+path, `document.readyState === "complete" && location.origin === `+strconv.Quote(b.origin)+
		` && new RegExp("^"+`+strconv.Quote(path)+`+"$").test(location.pathname)`)
}

// named finds the visible link or button of that accessible name, in the page
// or in the dialog that lies above it.
func named(name string) string {
	return `[...(document.querySelector("dialog[open]") || document).querySelectorAll("a, button, summary")].filter((e) => e.checkVisibility())
		.find((e) => (e.getAttribute("aria-label") || e.textContent).trim().replace(/\s+/g, " ") === ` + strconv.Quote(name) + `)`
}

// labelled finds the field with that label.
func labelled(label string) string {
	return `[...document.querySelectorAll("main label")].filter((l) => l.checkVisibility() &&
		l.textContent.trim().replace(/\s+/g, " ").startsWith(` + strconv.Quote(label) + `)).map((l) => l.control)[0]`
}

// pressAt clicks with the mouse in the middle of what js finds, once nothing
// lies above it.
func (b *tab) pressAt(what, js string) {
	b.t.Helper()
	find := `(() => { const e = ` + js + `; if (!e) return null;
		e.scrollIntoView({block: "center", behavior: "instant"});
		const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2;
		const hit = document.elementFromPoint(x, y);
		return hit && (e.contains(hit) || hit.contains(e)) ? [x, y] : null; })()`
	var at []float64
	for len(at) != 2 { // it can be replaced once more after it was there
		b.until(what, "document.readyState !== 'loading' && "+find+" !== null")
		at = eval[[]float64](b, find)
	}
	b.clicks++
	if err := chromedp.Do(b.ctx, chromedp.MouseClickXY(at[0], at[1])); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// press clicks the link or button of that name.
func (b *tab) press(name string) {
	b.t.Helper()
	b.pressAt("the button or link "+strconv.Quote(name), named(name))
}

// fill types into the field with that label, over what stands there.
func (b *tab) fill(label, text string) {
	b.t.Helper()
	field := labelled(label)
	b.pressAt("the field "+strconv.Quote(label), field)
	b.until("focus on "+label, "document.activeElement === "+field)
	eval[bool](b, "("+field+").select() || true")
	b.keys(text)
}

func (b *tab) keys(text string) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, chromedp.KeyEvent(text)); err != nil {
		b.t.Fatalf("typing: %v", err)
	}
}

// stay marks the document, and stayed tells whether it is still the same one:
// what has changed since, has changed without a reload.
func (b *tab) stay() { b.t.Helper(); eval[bool](b, "window.sameDocument = true") }

func (b *tab) stayed() {
	b.t.Helper()
	if !eval[bool](b, "window.sameDocument === true") {
		b.t.Error("the page was loaded again; it should have changed by itself")
	}
}

// loads waits until the next page that do leads to has loaded, also when it
// has the same address.
func (b *tab) loads(do func()) {
	b.t.Helper()
	eval[bool](b, "window.pageBefore = true")
	do()
	b.until("the next page", `!window.pageBefore && document.readyState === "complete"`)
}

func (b *tab) signIn(email, password string) {
	b.t.Helper()
	b.goTo("/signin")
	b.fill("Email", email)
	b.fill("Password", password)
	b.press("Sign in")
	b.at("/")
}

// watch notes what must not happen in any tab of a person.
type watch struct {
	t       testing.TB
	origin  string // of the portal
	mu      sync.Mutex
	faults  []string
	cookies map[string]map[string]bool // per host the names of the cookies that it was sent
}

func (w *watch) event(ev any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch ev := ev.(type) {
	case *network.EventRequestWillBeSent:
		w.request(ev.Request.URL)
	case *network.EventRequestWillBeSentExtraInfo:
		w.sent(ev)
	case *network.EventWebSocketCreated:
		w.request(ev.URL)
	case *runtime.EventExceptionThrown:
		w.exception(ev.ExceptionDetails)
	case *log.EventEntryAdded:
		w.entry(ev.Entry)
	case *audits.EventIssueAdded:
		if d := ev.Issue.Details; d != nil && d.ContentSecurityPolicyIssueDetails != nil && !d.ContentSecurityPolicyIssueDetails.IsReportOnly {
			w.faults = append(w.faults, fmt.Sprintf("content security policy: %+v", *d.ContentSecurityPolicyIssueDetails))
		}
	}
}

func (w *watch) request(address string) {
	u, err := url.Parse(address)
	if err != nil {
		w.faults = append(w.faults, "request for "+address)
		return
	}
	host := u.Hostname()
	local := host == "localhost" || strings.HasSuffix(host, ".localhost") || host == "127.0.0.1"
	if !local && u.Scheme != "data" && u.Scheme != "blob" && u.Scheme != "about" {
		w.faults = append(w.faults, "request to another host: "+address)
	}
}

// sent notes the cookies that a request really carries.
func (w *watch) sent(ev *network.EventRequestWillBeSentExtraInfo) {
	host := ""
	for name, value := range ev.Headers {
		if strings.EqualFold(name, "host") || name == ":authority" {
			host = fmt.Sprint(value)
		}
	}
	if w.cookies == nil {
		w.cookies = map[string]map[string]bool{}
	}
	if w.cookies[host] == nil {
		w.cookies[host] = map[string]bool{}
	}
	for _, c := range ev.AssociatedCookies {
		if len(c.BlockedReasons) == 0 && c.Cookie != nil {
			w.cookies[host][c.Cookie.Name] = true
		}
	}
}

// entry takes the browser's own complaints about a page of the portal as
// faults. That an answer was an error is none: pages show those on purpose.
// What Jupyter's pages make of missing files is theirs.
func (w *watch) entry(e *log.Entry) {
	if e.Level != log.EntryLevelError || !strings.HasPrefix(e.URL, w.origin+"/") ||
		strings.HasPrefix(e.Text, "Failed to load resource: the server responded with a status of 4") {
		return
	}
	w.faults = append(w.faults, "console: "+e.Text+" "+e.URL)
}

func (w *watch) exception(e *runtime.ExceptionDetails) {
	if !strings.Contains(e.URL, ".localhost:") {
		w.faults = append(w.faults, "exception: "+e.Text+" "+e.URL)
	}
}

// clean fails the test if anything was noted.
func (w *watch) clean() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.faults {
		w.t.Errorf("the browser noted: %s", f)
	}
	w.faults = nil
}

// sentTo lists the names of the cookies that a host was sent.
func (w *watch) sentTo(host string) map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cookies[host]
}
