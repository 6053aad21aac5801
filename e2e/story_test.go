package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// curlStory is a first day with Weir, told by curl alone. Only a kernel's
// WebSocket, which curl cannot speak, is a Go client's, with the same cookies.
type curlStory struct {
	t    *testing.T
	s    *server
	rest string // address of the API

	admin, ada, ben, eve curl // two members and a stranger
	project              int64
	adaMember            int64
	nb                   workspaceView
	origin               string // of Ada's workspace
}

type workspaceView struct {
	workspace
	URL    string `json:"url"`
	Demand struct {
		Cores int64 `json:"cores"`
	} `json:"demand"`
	Shares []struct {
		Cores       int64  `json:"cores"`
		Enforcement string `json:"enforcement"`
	} `json:"shares"`
}

func TestStoryByCurl(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, o options) {
		s := newServer(t, o)
		story := &curlStory{t: t, s: s, rest: s.url + "/api/v1"}
		story.setUp()
		story.makeTeam()
		story.launch()
		story.open()
		story.work()
		story.share()
		story.foreign()
		story.stop()
	})
}

// setUp: the printed link makes the first administrator, once.
func (c *curlStory) setUp() {
	c.t.Helper()
	link := c.s.setupLink()
	browser := newCurl(c.t)
	if r := browser.do(link); r.status != http.StatusOK {
		c.t.Fatalf("the setup page: %d %s", r.status, r.body)
	}
	form := []string{"--data-urlencode", "email=root@example.org", "--data-urlencode", "name=Root",
		"--data-urlencode", "password=" + password, "--data-urlencode", "password_again=" + password, link}
	if r := browser.do(form...); r.status != http.StatusSeeOther || r.header.Get("Location") != "/projects/start" {
		c.t.Fatalf("setup: %d, then to %q: %s", r.status, r.header.Get("Location"), r.body)
	}
	if r := browser.do(form...); r.status != http.StatusNotFound {
		c.t.Errorf("the setup link works again: %d", r.status)
	}
	if r := browser.do(c.s.url + "/"); r.status != http.StatusOK {
		c.t.Errorf("the home page: %d", r.status)
	}
	var token struct{ Secret string }
	browser.call(http.StatusCreated, "POST", c.rest+"/tokens", `{"name":"curl","scopes":["launch","project","admin"]}`, &token)
	c.admin = newCurl(c.t).as(token.Secret)
	var me struct {
		Email string
		Admin bool
	}
	c.admin.call(http.StatusOK, "GET", c.rest+"/me", "", &me)
	if me.Email != "root@example.org" || !me.Admin {
		c.t.Errorf("I am %+v", me)
	}
	newCurl(c.t).call(http.StatusUnauthorized, "GET", c.rest+"/me", "", nil)
}

// makeTeam: a project with a quota, a role with a peak, two members; and one
// who belongs to nothing.
func (c *curlStory) makeTeam() {
	c.t.Helper()
	var project, role, member id
	c.admin.call(http.StatusCreated, "POST", c.rest+"/projects",
		`{"name":"vision","quota":{"gpu_cores":100,"gpu_memory_mib":80000,"cpu_milli":4000,"memory_mib":4096,"storage_mib":0},"confirm":true,"reason":"a test"}`, &project)
	c.project = project.ID
	at := fmt.Sprintf("%s/projects/%d", c.rest, project.ID)
	c.admin.call(http.StatusCreated, "POST", at+"/roles",
		`{"name":"engineer","permission":"member","limit":{"gpu_cores":50,"gpu_memory_mib":40000,"cpu_milli":2000,"memory_mib":2048,"storage_mib":0}}`, &role)
	for _, name := range []string{"ada", "ben", "eve", "zoe"} {
		c.admin.call(http.StatusCreated, "POST", c.rest+"/users", fmt.Sprintf(`{"email":"%[1]s@example.org","name":"%[1]s","password":%[2]q}`, name, password), nil)
	}
	join := func(name string) string { return fmt.Sprintf(`{"email":"%s@example.org","role_id":%d}`, name, role.ID) }
	c.admin.call(http.StatusCreated, "POST", at+"/members", join("ada"), &member)
	c.adaMember = member.ID
	c.admin.call(http.StatusCreated, "POST", at+"/members", join("ben"), nil)
	// The quota is promised; a third peak would exceed it.
	var refused problem
	c.admin.call(http.StatusConflict, "POST", at+"/members", join("zoe"), &refused)
	if refused.Kind != "no_capacity" || len(refused.Errors) == 0 || !strings.Contains(fmt.Sprint(refused.Errors), "0 of the project's quota") {
		c.t.Errorf("a member too many: %+v", refused)
	}
	c.ada, c.ben, c.eve = c.signIn("ada"), c.signIn("ben"), c.signIn("eve")
}

// signIn signs in at the portal and makes an access token there.
func (c *curlStory) signIn(name string) curl {
	c.t.Helper()
	browser := newCurl(c.t)
	r := browser.do("--data-urlencode", "email="+name+"@example.org", "--data-urlencode", "password="+password, c.s.url+"/signin")
	if r.status != http.StatusSeeOther {
		c.t.Fatalf("sign-in of %s: %d %s", name, r.status, r.body)
	}
	var token struct{ Secret string }
	browser.call(http.StatusCreated, "POST", c.rest+"/tokens", `{"name":"curl","scopes":["launch","project","admin"]}`, &token)
	return newCurl(c.t).as(token.Secret)
}

func (c *curlStory) launchBody(name string, cores int) string {
	return fmt.Sprintf(`{"project_id":%d,"name":%q,"request":{"gpus":1,"cores":%d,"gpu_memory_mib":16384,"cpu_milli":2000,"memory_mib":512}}`, c.project, name, cores)
}

func (c *curlStory) await(as curl, id int64, state string) (w workspaceView) {
	c.t.Helper()
	eventually(c.t, starting, func() string {
		as.call(http.StatusOK, "GET", fmt.Sprintf("%s/workspaces/%d", c.rest, id), "", &w)
		if w.State == state {
			return ""
		}
		return fmt.Sprintf("workspace %d is %s: %s %s", id, w.State, w.Reason, w.LogTail)
	})
	return w
}

// launch: 50 GPU cores, and no more than the role's peak.
func (c *curlStory) launch() {
	c.t.Helper()
	var refused problem
	c.ada.call(http.StatusUnprocessableEntity, "POST", c.rest+"/workspaces", c.launchBody("greedy", 60), &refused)
	if len(refused.Errors) != 1 || refused.Errors[0].Field != "request.cores" {
		c.t.Errorf("more than the limit: %+v", refused)
	}
	var w workspaceView
	c.ada.call(http.StatusCreated, "POST", c.rest+"/workspaces", c.launchBody("secret-plan", 50), &w)
	c.nb = c.await(c.ada, w.ID, "running")
	if c.nb.Demand.Cores != 50 || len(c.nb.Shares) != 1 || c.nb.Shares[0].Cores != 50 || c.nb.Shares[0].Enforcement != "advisory" {
		c.t.Errorf("it runs with %+v", c.nb)
	}
	c.origin = originOf(c.t, c.nb.URL)
	var pool struct {
		Providers []struct{ Devices []deviceView }
	}
	c.ada.call(http.StatusOK, "GET", c.rest+"/pool", "", &pool)
	found := false
	for _, d := range pool.Providers[0].Devices {
		for _, s := range d.Shares {
			found = found || s.WorkspaceID == c.nb.ID && s.Cores == 50 && s.MemoryMiB == 16384 && d.FreeCores == 50
		}
	}
	if !found || len(pool.Providers[0].Devices) != 8 {
		c.t.Errorf("the pool does not show the share: %+v", pool)
	}
}

// open: the token lets one browser in, once.
func (c *curlStory) open() {
	c.t.Helper()
	var opened struct{ URL string }
	c.ada.call(http.StatusOK, "POST", fmt.Sprintf("%s/workspaces/%d/open", c.rest, c.nb.ID), "", &opened)
	c.ada.token = "" // from here on her browser has what the address gave it
	r := c.ada.do(opened.URL)
	if r.status != http.StatusSeeOther || !strings.HasPrefix(r.header.Get("Location"), "/") {
		c.t.Fatalf("opening: %d, then to %q: %s", r.status, r.header.Get("Location"), r.body)
	}
	if r := c.ada.do(c.origin + r.header.Get("Location")); r.status != http.StatusOK || !strings.Contains(strings.ToLower(r.body), "jupyter") {
		c.t.Errorf("the notebook's page: %d %.500s", r.status, r.body)
	}
	used := newCurl(c.t).do("--header", "Accept: text/html", opened.URL)
	never := newCurl(c.t).do("--header", "Accept: text/html", c.origin+"/.weir/open?token=never-was")
	if used.status != http.StatusForbidden || used.body != never.body || used.header.Get("Set-Cookie") != "" {
		c.t.Errorf("the second use: %d, %v, %s", used.status, used.header, used.body)
	}
	c.revealsNothing(used)
}

// revealsNothing holds an answer for strangers to saying nothing of what is
// there.
func (c *curlStory) revealsNothing(r reply) {
	c.t.Helper()
	for _, word := range []string{"secret-plan", "vision", "ada@", "Jupyter", "running", "stopped"} {
		if strings.Contains(r.body, word) || strings.Contains(fmt.Sprint(r.header), word) {
			c.t.Errorf("the answer reveals %q: %v %s", word, r.header, r.body)
		}
	}
}

// browser is a Go client with the cookies that curl got from an origin.
func (c *curlStory) browser(from curl, origin string) *http.Client {
	c.t.Helper()
	client := c.s.browser()
	u, err := url.Parse(origin)
	if err != nil {
		c.t.Fatal(err)
	}
	client.Jar.SetCookies(u, from.cookies(u.Hostname()))
	return client
}

// work: a cell writes a file, and the contents API reads it.
func (c *curlStory) work() {
	c.t.Helper()
	got := executeCell(c.t, c.browser(c.ada, c.origin), c.origin, "import os; print(open('a.txt','w').write(str(6*7)), os.getcwd(), os.environ['WEIR_GPU_CORES'])")
	if got != "2 /home/jovyan 50\n" {
		c.t.Errorf("the cell printed %q", got)
	}
	var file struct{ Content string }
	c.ada.call(http.StatusOK, "GET", c.origin+"/api/contents/a.txt", "", &file)
	if file.Content != "42" {
		c.t.Errorf("a.txt holds %q", file.Content)
	}
}

// share: a colleague reads the file and cannot write it.
func (c *curlStory) share() {
	c.t.Helper()
	var w workspaceView
	c.ben.call(http.StatusCreated, "POST", c.rest+"/workspaces", c.launchBody("bens", 50), &w)
	w = c.await(c.ben, w.ID, "running")
	var opened struct{ URL string }
	c.ben.call(http.StatusOK, "POST", fmt.Sprintf("%s/workspaces/%d/open", c.rest, w.ID), "", &opened)
	visitor := newCurl(c.t)
	visitor.do(opened.URL)
	origin := originOf(c.t, w.URL)
	path := fmt.Sprintf("/notebook/%d/%d/a.txt", c.project, c.adaMember)
	browser := c.browser(visitor, origin)
	if got := executeCell(c.t, browser, origin, fmt.Sprintf("print(open(%q).read())", path)); got != "42\n" {
		c.t.Errorf("the colleague reads %q", got)
	}
	if got := executeCell(c.t, browser, origin, fmt.Sprintf("open(%q, 'w')", path)); !strings.Contains(got, "Read-only file system") {
		c.t.Errorf("the colleague's write says %q", got)
	}
	if r := visitor.do(c.origin + "/api/contents/a.txt"); r.status != http.StatusUnauthorized {
		c.t.Errorf("with the cookie of another workspace: %d %s", r.status, r.body)
	}
}

// foreign: a workspace of others answers like one that is not there.
func (c *curlStory) foreign() {
	c.t.Helper()
	nowhere := strings.Replace(c.origin, fmt.Sprintf("ws-%d.", c.nb.ID), "ws-999999.", 1)
	for name, as := range map[string]curl{"a colleague": c.ben, "a stranger": c.eve, "an administrator": c.admin, "nobody": newCurl(c.t)} {
		for _, accept := range []string{"text/html", "application/json"} {
			there := as.do("--header", "Accept: "+accept, c.origin+"/tree")
			none := as.do("--header", "Accept: "+accept, nowhere+"/tree")
			same := there.status == none.status && there.body == none.body &&
				there.header.Get("Location") == strings.Replace(none.header.Get("Location"), "999999", fmt.Sprint(c.nb.ID), 1)
			if there.status < 300 || !same {
				c.t.Errorf("%s sees %d %v %s\nand of what is not there %d %v %s", name, there.status, there.header, there.body, none.status, none.header, none.body)
			}
			c.revealsNothing(there)
		}
	}
	c.eve.call(http.StatusNotFound, "GET", fmt.Sprintf("%s/workspaces/%d", c.rest, c.nb.ID), "", nil)
	c.eve.call(http.StatusNotFound, "POST", fmt.Sprintf("%s/workspaces/%d/open", c.rest, c.nb.ID), "", nil)
	c.eve.call(http.StatusNotFound, "POST", fmt.Sprintf("%s/workspaces/%d/stop", c.rest, c.nb.ID), "", nil)
	c.ben.call(http.StatusForbidden, "POST", fmt.Sprintf("%s/workspaces/%d/open", c.rest, c.nb.ID), "", nil)
}

// stop: the share is free, the workspace is closed, and it stops only once.
func (c *curlStory) stop() {
	c.t.Helper()
	at := fmt.Sprintf("%s/workspaces/%d", c.rest, c.nb.ID)
	c.admin.call(http.StatusAccepted, "POST", at+"/stop", "", nil)
	if w := c.await(c.admin, c.nb.ID, "stopped"); len(w.Shares) != 0 {
		c.t.Errorf("it still holds %v", w.Shares)
	}
	if r := c.admin.call(http.StatusConflict, "POST", at+"/stop", "", nil); !strings.Contains(r.body, "already stopped") {
		c.t.Errorf("the second stop: %s", r.body)
	}
	var pool struct {
		Totals struct {
			CoresInUse int64 `json:"cores_in_use"`
		}
	}
	c.admin.call(http.StatusOK, "GET", c.rest+"/pool", "", &pool)
	if pool.Totals.CoresInUse != 50 { // Ben's
		c.t.Errorf("%d cores are in use", pool.Totals.CoresInUse)
	}
	// Its owner hears that it is stopped, anybody else nothing.
	if r := c.ada.do("--header", "Accept: text/html", c.origin+"/tree"); r.status != http.StatusConflict || !strings.Contains(r.body, "secret-plan") {
		c.t.Errorf("to its owner: %d %s", r.status, r.body)
	}
	for _, other := range []curl{c.ben, c.eve, newCurl(c.t)} {
		c.revealsNothing(other.do("--header", "Accept: text/html", c.origin+"/tree"))
	}
}
