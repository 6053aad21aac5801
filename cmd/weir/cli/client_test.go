package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"weir/handlers"
	"weir/models"
	"weir/pool/providers"
)

const secretToken = "weir_pat_0123456789"

// fakeServer answers what a test says and records the requests.
type fakeServer struct {
	*httptest.Server
	mu  sync.Mutex
	log []string // method, path, If-Match and body
}

// requests are those so far.
func (p *fakeServer) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

func newFakeServer(t *testing.T, answers map[string]http.HandlerFunc) *fakeServer {
	t.Helper()
	p := &fakeServer{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer "+secretToken {
			t.Errorf("%s: %v, %q", r.URL, err, r.Header.Get("Authorization"))
		}
		p.mu.Lock()
		p.log = append(p.log, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("If-Match")+" "+string(body)))
		p.mu.Unlock()
		if answer := answers[r.Method+" "+strings.TrimPrefix(r.URL.Path, apiPath)]; answer != nil {
			answer(w, r)
			return
		}
		problemAnswer(http.StatusNotFound, "The page was not found.")(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func last(list []string) string { return list[len(list)-1] }

func jsonAnswer(body any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"7"`)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body) // a client that has gone needs no answer
	}
}

func problemAnswer(status int, detail string, fields ...handlers.ProblemField) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(handlers.Problem{Type: "about:blank", Status: status, Detail: detail, Errors: fields})
	}
}

// run executes a command line of these commands alone.
func run(args []string, out, errOut io.Writer) int {
	root := &cobra.Command{Use: "weir"}
	root.AddCommand(Commands()...)
	return Run(root, args, out, errOut)
}

// weir runs a command line against the server.
func (p *fakeServer) weir(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	t.Setenv("WEIR_URL", p.URL)
	t.Setenv("WEIR_TOKEN", secretToken)
	var stdout, stderr bytes.Buffer
	code = run(args, &stdout, &stderr)
	if strings.Contains(stdout.String()+stderr.String(), secretToken) {
		t.Errorf("weir %s prints the token:\n%s%s", strings.Join(args, " "), &stdout, &stderr)
	}
	return code, stdout.String(), stderr.String()
}

// A refusal that is about one field alone is said once.
func TestRefusalOfOneField(t *testing.T) {
	const why = "its GPUs are free until 2026-12-01 01:40 UTC"
	p := newFakeServer(t, map[string]http.HandlerFunc{"GET /pool": problemAnswer(409, why, handlers.ProblemField{Field: "ends_at", Reason: why})})
	if _, _, errOut := p.weir(t, "pool"); errOut != "weir: ends_at: "+why+"\n" {
		t.Errorf("it says %q", errOut)
	}
}

func TestRefusalsHaveTheirExitCodes(t *testing.T) {
	for status, want := range map[int]int{400: ExitUsage, 422: ExitUsage, 401: ExitRefused, 403: ExitRefused, 404: ExitNotFound,
		409: ExitConflict, 412: ExitConflict, 429: ExitError, 500: ExitError, 502: ExitUnreachable, 503: ExitUnreachable} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			p := newFakeServer(t, map[string]http.HandlerFunc{"GET /pool": problemAnswer(status, "Not so.\x1b[31m",
				handlers.ProblemField{Field: "terms.cores", Reason: "must be from 0 to 100"})})
			code, out, errOut := p.weir(t, "pool")
			if code != want || out != "" || !strings.Contains(errOut, "\n  terms.cores: must be from 0 to 100\n") || strings.Contains(errOut, "\x1b") {
				t.Errorf("exit code %d, want %d; it says %q%q", code, want, out, errOut)
			}
		})
	}
}

func TestWhatIsNoPortal(t *testing.T) {
	elsewhere := newFakeServer(t, nil)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		server string
		says   string
	}{
		"closed": {server: nobody, says: "cannot reach the server %s: dial tcp"},
		"page":   {answer: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello</html>") }, says: "unusable response of the server %s: unexpected response (200 OK"},
		"other":  {answer: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "bad gateway", http.StatusBadGateway) }, says: "unusable response of the server %s: unexpected response (502 Bad Gateway"},
		"shape":  {answer: jsonAnswer([]int{1}), says: "unusable response of the server %s: invalid response"},
		"broken": {answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, says: "cannot reach the server %s: EOF"},
		"redirect": {answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/x", http.StatusFound)
		}, says: "unusable response of the server %s: it redirects to"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFakeServer(t, map[string]http.HandlerFunc{"GET /pool": c.answer})
			if c.server == "" {
				c.server = p.URL
			}
			code, out, errOut := p.weir(t, "pool", "--server", c.server)
			c.says = fmt.Sprintf(c.says, c.server)
			if code != ExitUnreachable || out != "" || !strings.Contains(errOut, c.says) {
				t.Errorf("exit code %d; it says %q%q, not %q", code, out, errOut, c.says)
			}
		})
	}
	if len(elsewhere.requests()) > 0 {
		t.Errorf("a redirect was followed: %v", elsewhere.requests())
	}
}

func TestTimeout(t *testing.T) {
	p := newFakeServer(t, map[string]http.HandlerFunc{"GET /pool": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }})
	code, _, errOut := p.weir(t, "pool", "--timeout", "50ms")
	if code != ExitUnreachable || !strings.Contains(errOut, "50ms") || !strings.Contains(errOut, "--timeout") {
		t.Errorf("exit code %d; it says %q", code, errOut)
	}
}

func TestConnectionFlags(t *testing.T) {
	dir := t.TempDir()
	good, empty := filepath.Join(dir, "good"), filepath.Join(dir, "empty")
	for file, text := range map[string]string{good: secretToken + "\n", empty: "\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := newFakeServer(t, map[string]http.HandlerFunc{"GET /pool": jsonAnswer(handlers.Pool{})})
	for _, c := range []struct {
		url, token, tokenFile string // of the environment
		args                  string
		code                  int
		says                  string
	}{
		{p.URL, "", "", "--token-file " + good, ExitOK, ""},
		{p.URL, "", good, "", ExitOK, ""},
		{p.URL, "wrong", "", "--token-file " + good, ExitOK, ""},
		{p.URL, secretToken, empty, "", ExitOK, ""},
		{"", secretToken, "", "--server " + p.URL + "/", ExitOK, ""},
		{"", "", "", "", ExitUsage, "no server"},
		{"", "", "", "", ExitUsage, "no access token"},
		{p.URL, "", "", "--token-file " + empty, ExitUsage, "is empty"},
		{p.URL, "", "", "--token-file " + filepath.Join(dir, "none"), ExitUsage, "no such file"},
		{p.URL, "", "", "--token a --token-file " + good, ExitUsage, "both"},
		{p.URL, "two\nlines-" + secretToken, "", "", ExitUsage, "invalid characters"},
		{"ftp://x", secretToken, "", "", ExitUsage, "--server"},
		{p.URL + "/api/v1", secretToken, "", "", ExitUsage, "without a path"},
		{"http://user:" + secretToken + "@x", secretToken, "", "", ExitUsage, "without a user and a password"},
		{p.URL, secretToken, "", "--timeout 0s", ExitUsage, "--timeout"},
		{p.URL, secretToken, "", "--timeout soon", ExitUsage, "--timeout"},
		{p.URL, secretToken, "", "--output xml", ExitUsage, "xml"},
	} {
		t.Setenv("WEIR_URL", c.url)
		t.Setenv("WEIR_TOKEN", c.token)
		t.Setenv("WEIR_TOKEN_FILE", c.tokenFile)
		var out, errOut bytes.Buffer
		code := run(append([]string{"pool"}, strings.Fields(c.args)...), &out, &errOut)
		if code != c.code || !strings.Contains(errOut.String(), c.says) || strings.Contains(errOut.String(), secretToken) {
			t.Errorf("%+v: exit code %d; it says %s", c, code, &errOut)
		}
	}
}

// A list comes in pages; what the portal sent of each item is what a program
// gets, with fields that this program does not know.
func TestListsArePaged(t *testing.T) {
	p := newFakeServer(t, map[string]http.HandlerFunc{"GET /pool/providers": func(w http.ResponseWriter, r *http.Request) {
		switch r.FormValue("cursor") {
		case "":
			fmt.Fprint(w, `{"items":[{"id":1,"name":"one","new":true}],"next_cursor":"1"}`)
		case "1":
			fmt.Fprint(w, `{"items":[{"id":2,"name":"t\u0007wo"}]}`)
		}
	}})
	code, out, errOut := p.weir(t, "provider", "list", "--output", "json")
	var got struct{ Items []map[string]any }
	if err := json.Unmarshal([]byte(out), &got); code != ExitOK || err != nil || len(got.Items) != 2 || got.Items[0]["new"] != true {
		t.Errorf("exit code %d, %v: %s%s", code, err, out, errOut)
	}
	code, out, _ = p.weir(t, "provider", "list")
	if code != ExitOK || !strings.Contains(out, "\n1   one ") || !strings.Contains(out, "\n2   t wo ") {
		t.Errorf("exit code %d: %q", code, out)
	}
}

func TestEndlessList(t *testing.T) {
	p := newFakeServer(t, map[string]http.HandlerFunc{"GET /pool/providers": jsonAnswer(handlers.List[handlers.Provider]{Items: []handlers.Provider{}, NextCursor: "1"})})
	code, _, errOut := p.weir(t, "provider", "list")
	if code != ExitUnreachable || !strings.Contains(errOut, "does not end") || len(p.requests()) != 2 {
		t.Errorf("exit code %d after %d pages; it says %s", code, len(p.requests()), errOut)
	}
}

// What is set is what was given; the rest, and the version, is what was read.
func TestProviderSet(t *testing.T) {
	owner := int64(3)
	was := handlers.Provider{ID: 4, Name: "node", OwnerID: &owner, Terms: models.Terms{Cores: 50, Devices: []int64{7}, GraceMinutes: 5}}
	file := filepath.Join(t.TempDir(), "terms.json")
	if err := os.WriteFile(file, []byte(`{"projects":[9],"time_zone":"Asia/Shanghai"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	night := []models.Window{{Days: []int{1, 2, 3, 4, 5}, From: "20:00", To: "08:00"}, {Days: []int{0, 6}, From: "00:00", To: "00:00"}}
	for _, c := range []struct {
		args []string
		want providers.ProviderInput
	}{
		{[]string{"--cores", "60"}, providers.ProviderInput{Name: "node", Terms: models.Terms{Cores: 60, Devices: []int64{7}, GraceMinutes: 5}}},
		{[]string{"--name", "big", "--devices", "all", "--grace", "1h"}, providers.ProviderInput{Name: "big", Terms: models.Terms{Cores: 50, GraceMinutes: 60}}},
		{[]string{"--hours", "mon-fri 20:00-08:00", "--hours", "sat,sun 00:00-24:00", "--time-zone", "Europe/Berlin", "--projects", "3"},
			providers.ProviderInput{Name: "node", Terms: models.Terms{Cores: 50, Devices: []int64{7}, Projects: []int64{3}, Hours: night, TimeZone: "Europe/Berlin", GraceMinutes: 5}}},
		{[]string{"--owner", "Ann@example.org", "--terms-file", file, "--cores", "10"},
			providers.ProviderInput{Name: "node", OwnerID: &owner, Terms: models.Terms{Cores: 10, Projects: []int64{9}, TimeZone: "Asia/Shanghai"}}},
	} {
		p := newFakeServer(t, map[string]http.HandlerFunc{
			"GET /pool/providers": jsonAnswer(handlers.List[handlers.Provider]{Items: []handlers.Provider{was}}), "GET /pool/providers/4": jsonAnswer(was),
			"GET /users":            jsonAnswer(handlers.List[handlers.User]{Items: []handlers.User{{ID: 2, Email: "joann@example.org"}, {ID: 3, Email: "ann@example.org"}}}),
			"PUT /pool/providers/4": jsonAnswer(was)})
		body, err := json.Marshal(c.want)
		if err != nil {
			t.Fatal(err)
		}
		code, _, errOut := p.weir(t, append([]string{"provider", "set", "node"}, c.args...)...)
		if got, want := last(p.requests()), `PUT /api/v1/pool/providers/4 "7" `+string(body); code != ExitOK || got != want {
			t.Errorf("%v: exit code %d, %s\ngot  %s\nwant %s", c.args, code, errOut, got, want)
		}
	}
}

// What is wrong with a command line is told at once, and nothing is asked of
// the portal.
func TestProviderCommandLines(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "terms.json")
	if err := os.WriteFile(bad, []byte(`{"coers":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newFakeServer(t, nil)
	for _, c := range []struct {
		args string
		says []string
	}{
		{"provider set 1", []string{"nothing to change", "--terms-file"}},
		{"provider set 1 --devices x --grace 90s --hours mon --projects 0", []string{"--devices", "--grace", "--hours", "--projects"}},
		{"provider set 1 --terms-file " + bad, []string{"coers"}},
		{"provider set 1 --terms-file /does/not/exist", []string{"no such file"}},
		{"provider set 1 --cores many", []string{"many"}},
		{"provider set", []string{"arg"}},
		{"provider recall 1 --grace soon", []string{"--grace"}},
		{"provider lend 1", []string{"lend"}},
		{"device share 1", []string{"--mode"}},
		{"device share 1 --mode half", []string{"half"}},
		{"device share 1 --mode mps --layout 1g.10gb", []string{"--layout"}},
		{"device telemetry 1 --span year", []string{"year"}},
		{"authorize ABCD", []string{"16 letters"}},
	} {
		code, _, errOut := p.weir(t, strings.Fields(c.args)...)
		for _, word := range c.says {
			if code != ExitUsage || !strings.Contains(errOut, word) {
				t.Errorf("weir %s: exit code %d; it says %s, not %q", c.args, code, errOut, word)
			}
		}
	}
	if len(p.requests()) > 0 {
		t.Errorf("the portal was asked %v", p.requests())
	}
}

func TestDestructiveCommandsNeedAYes(t *testing.T) {
	now := handlers.Provider{ID: 4, Name: "node", State: "recalled", Users: 2}
	answers := map[string]http.HandlerFunc{"GET /pool/providers/4": jsonAnswer(now), "POST /pool/providers/4/recall": jsonAnswer(now),
		"POST /pool/providers/4/revoke": jsonAnswer(now), "DELETE /pool/providers/4": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }}
	for action, want := range map[string]string{
		"recall": `POST /api/v1/pool/providers/4/recall "7" {"grace_minutes":10,"reason":"repairs"}`,
		"revoke": `POST /api/v1/pool/providers/4/revoke "7"`,
		"remove": `DELETE /api/v1/pool/providers/4 "7"`,
	} {
		args := []string{"provider", action, "4"}
		if action == "recall" {
			args = append(args, "--grace", "10m", "--reason", "repairs")
		}
		p := newFakeServer(t, answers)
		code, _, errOut := p.weir(t, append(args, "--no-interactive")...)
		if code != ExitUsage || !strings.Contains(errOut, "--yes") || !strings.Contains(errOut, "node") || len(p.requests()) != 1 {
			t.Errorf("%s without --yes: exit code %d, %s; asked %v", action, code, errOut, p.requests())
		}
		if code, _, errOut = p.weir(t, append(args, "--yes")...); code != ExitOK || last(p.requests()) != want {
			t.Errorf("%s: exit code %d, %s; asked %v", action, code, errOut, p.requests())
		}
	}
}

func TestConfirm(t *testing.T) {
	for text, want := range map[string]error{"y\n": nil, " YES \n": nil, "yes": nil, "n\n": errNotConfirmed, "\n": errNotConfirmed, "": errNotConfirmed, "yeah\n": errNotConfirmed} {
		var asked bytes.Buffer
		s := &session{in: strings.NewReader(text), errOut: &asked, interactive: true}
		if err := s.confirm("All of %s ends.", "it"); !errors.Is(err, want) || !strings.HasPrefix(asked.String(), "All of it ends.\n") {
			t.Errorf("%q: %v, asked %q", text, err, &asked)
		}
	}
}

func TestMinutesWords(t *testing.T) {
	for n, want := range map[int64]string{0: "0m", 5: "5m", 30: "30m", 60: "1h", 90: "1h30m", 600: "10h", 7 * 24 * 60: "168h"} {
		if got := minutes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
		if back, err := parseMinutes(minutes(n)); err != nil || back != n {
			t.Errorf("%d is read back as %d, %v", n, back, err)
		}
	}
}

func TestPoolTable(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	half := int64(50)
	v := handlers.Pool{Totals: handlers.PoolTotals{GPUs: 2, Cores: 200, FreeCores: 40, CoresInUse: 160, LargestFreeCores: 40}, Computing: &half,
		Providers: []handlers.Provider{{ID: 1, Name: "node", State: "recalled", SeenAt: at, RecallAt: &at, Devices: []handlers.Device{
			{ID: 1, Model: "NVIDIA H100", Present: true, FreeCores: 40}, {ID: 2, Model: "NVIDIA H100", Present: true}}}},
		Waiting: []handlers.QueueEntry{
			{Position: 1, Anonymous: true, Demand: models.Demand{GPUs: 2, Cores: 100}, Since: at, Estimate: handlers.Estimate{Outcome: "placed", Text: "in about 5 minutes"}},
			{Position: 2, WorkspaceID: 9, User: "Ann", Project: "vision", Demand: models.Demand{GPUs: 1, Cores: 50, GPUModel: "h100"}, Since: at, Behind: "age",
				Reason: "no GPU has so much free", Estimate: handlers.Estimate{Outcome: "placed", Known: true, Text: "within a minute"}}},
		Unmet: []handlers.Unmet{{GPUs: 2, Cores: 100, Waiting: 1, Refused: 3, Oldest: &at}}}
	var out bytes.Buffer
	tab := newTable(&out)
	poolTable(tab, v)
	if err := tab.flush(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"GPU cores        40 available, 160 in use, 200 total; at most 40 available on one GPU\n", "GPU utilization  50% on average\n",
		"1   node  recalled  2     NVIDIA H100  40               -      2026-03-01 12:00:00  shares end at 2026-03-01 12:00:00\n",
		"1         -     -        -          2 × 100 GPU cores     2026-03-01 12:00:00  ~ in about 5 minutes  -          -\n",
		"2         Ann   vision   9          50 GPU cores of h100  2026-03-01 12:00:00  within a minute       age        no GPU has so much free\n",
		"any model     2     100         1        3              2026-03-01 12:00:00\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
