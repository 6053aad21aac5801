package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	password = "correct horse battery staple"
	operator = "operator@example.org"
	reader   = "person0@example.org" // who looks at the pages
)

// How large the world of Weir is: a group that shares one machine of eight GPUs.
const (
	projectCount = 6
	memberCount  = 8 // of each project
	runningCount = 12
)

// weir is a running portal.
type weir struct {
	program, databaseURL string
	stub                 string // the program of notebooks
	env                  []string
	process              *process
	address              string // where it listens
	origin               string

	admin         api
	members       []api // everybody, the reader first
	project       int64 // one of the reader's
	workspace     int64 // the reader's
	workspaces    []int64
	environment   fields // as it was made
	environmentID int64
	socket        string // of the reader's notebook
}

// startWeir starts a portal with its world. It also returns what it has started
// before an error.
func startWeir(ctx context.Context, ps *processes, program, databaseURL string) (*weir, error) {
	w := &weir{program: program, databaseURL: databaseURL}
	var err error
	if w.stub, err = copyStub(ps.dir); err != nil {
		return w, err
	}
	ports, err := freePorts(1)
	if err != nil {
		return w, err
	}
	port, data := strconv.Itoa(ports[0]), filepath.Join(ps.dir, "weir")
	w.env = []string{"WEIR_DATA_DIR=" + data, "WEIR_DATABASE_URL=" + databaseURL}
	w.address, w.origin = "127.0.0.1:"+port, "http://localhost:"+port
	w.process, err = ps.start("weir-serve", w.env, program, "serve", "--listen", w.address, "--agents-listen", "127.0.0.1:0",
		"--simulate-gpus", "h100:8")
	if err != nil {
		return w, err
	}
	if err := w.process.awaitHTTP(ctx, "http://"+w.address+"/readyz", http.StatusOK); err != nil {
		return w, err
	}
	if err := w.makeWorld(ctx); err != nil {
		return w, err
	}
	w.socket = filepath.Join(data, "run", fmt.Sprintf("ws-%d-1", w.workspace), "jupyter.sock")
	return w, nil
}

func (w *weir) database() string {
	if w.databaseURL == "" {
		return "SQLite"
	}
	return "PostgreSQL"
}

// command runs a command of weir on the portal's database.
func (w *weir) command(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, w.program, args...)
	var stderr bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stderr = append(withoutSettings(cmd.Environ()), w.env...), strings.NewReader(stdin), &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("weir %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}

func (w *weir) tokenOf(ctx context.Context, email, name string) (api, error) {
	token, err := w.command(ctx, "", "admin", "create-token", "--email", email, "--name", name)
	return api{"http://" + w.address + "/api/v1", token}, err
}

type id struct {
	ID int64 `json:"id"`
}

type fields = map[string]any

// makeWorld makes accounts, projects and running workspaces. The reader is a
// member of half of the projects.
func (w *weir) makeWorld(ctx context.Context) (err error) {
	if _, err = w.command(ctx, password+"\n", "admin", "create-user", "--email", operator, "--name", "Operator", "--admin",
		"--password-stdin"); err != nil {
		return err
	}
	if w.admin, err = w.tokenOf(ctx, operator, "peers"); err != nil {
		return err
	}
	var environment id
	w.environment = fields{"name": "Stub notebook", "language": "none", "language_version": "1",
		"command": []string{w.stub, "-stub", stubSocket}, "default_path": kernelsPath}
	if err := w.admin.call(ctx, "POST", "/environments", w.environment, &environment); err != nil {
		return err
	}
	var projects []int64
	for p := range projectCount {
		project, err := w.makeProject(ctx, p)
		if err != nil {
			return err
		}
		projects = append(projects, project)
	}
	w.project = projects[0]
	w.environmentID = environment.ID
	return w.launchAll(ctx, projects)
}

// emailOf names the m-th member of the p-th project; the first one of every
// other project is the reader.
func emailOf(p, m int) string {
	if p%2 == 0 && m == 0 {
		return reader
	}
	return fmt.Sprintf("person%d@example.org", p*memberCount+m)
}

func (w *weir) makeProject(ctx context.Context, p int) (project int64, err error) {
	limit := func(n int) fields {
		return fields{"gpu_cores": 100 * n, "gpu_memory_mib": n * 81920, "cpu_milli": n * 8000, "memory_mib": n * 2048, "storage_mib": 0}
	}
	var made, role id
	if err := w.admin.call(ctx, "POST", "/projects", fields{"name": fmt.Sprintf("Project %d", p), "quota": limit(memberCount),
		"confirm": true, "reason": "more than the pool has"},
		&made); err != nil {
		return 0, err
	}
	at := fmt.Sprintf("/projects/%d", made.ID)
	if err := w.admin.call(ctx, "POST", at+"/roles", fields{"name": "engineer", "permission": "member", "limit": limit(1)},
		&role); err != nil {
		return 0, err
	}
	for m := range memberCount {
		email := emailOf(p, m)
		if email != reader || p == 0 {
			if err := w.makeAccount(ctx, email); err != nil {
				return 0, err
			}
		}
		if err := w.admin.call(ctx, "POST", at+"/members", fields{"email": email, "role_id": role.ID}, nil); err != nil {
			return 0, err
		}
	}
	return made.ID, nil
}

func (w *weir) makeAccount(ctx context.Context, email string) error {
	name, _, _ := strings.Cut(email, "@")
	return w.admin.call(ctx, "POST", "/users", fields{"email": email, "name": name, "password": password}, nil)
}

// launchAll launches workspaces, spread over the projects, and waits until they
// run.
func (w *weir) launchAll(ctx context.Context, projects []int64) error {
	for i := range runningCount {
		p := i % projectCount
		name := fmt.Sprintf("notebook-%d", i)
		member, err := w.tokenOf(ctx, emailOf(p, i/projectCount), name)
		if err != nil {
			return err
		}
		var launched id
		if err := member.call(ctx, "POST", "/workspaces", fields{"project_id": projects[p], "environment_id": w.environmentID, "name": name,
			"request": fields{"gpus": 1, "cores": 50, "gpu_memory_mib": 8192, "cpu_milli": 8000, "memory_mib": 512}}, &launched); err != nil {
			return err
		}
		w.members, w.workspaces = append(w.members, member), append(w.workspaces, launched.ID)
	}
	w.workspace = w.workspaces[0]
	for _, id := range w.workspaces {
		if err := w.awaitState(ctx, id, "running"); err != nil {
			return err
		}
	}
	return nil
}

func (w *weir) awaitState(ctx context.Context, id int64, state string) error {
	return eventually(ctx, starting, func() error {
		var seen struct{ State, Reason string }
		if err := w.admin.call(ctx, "GET", fmt.Sprintf("/workspaces/%d", id), nil, &seen); err != nil {
			return err
		}
		if seen.State != state {
			return fmt.Errorf("workspace %d is %s: %s", id, seen.State, seen.Reason)
		}
		return nil
	})
}

// stop stops the workspaces, which would outlive the portal.
func (w *weir) stop(ctx context.Context) error {
	for _, id := range w.workspaces {
		if err := w.admin.call(ctx, "POST", fmt.Sprintf("/workspaces/%d/stop", id), nil, nil); err != nil {
			return err
		}
	}
	for _, id := range w.workspaces {
		if err := w.awaitState(ctx, id, "stopped"); err != nil {
			return err
		}
	}
	return nil
}

// signIn returns the reader's browser.
func (w *weir) signIn(ctx context.Context) (*browser, error) {
	b, err := newBrowser(w.address)
	if err != nil {
		return nil, err
	}
	return b, b.post(ctx, w.origin+"/signin", url.Values{"email": {reader}, "password": {password}})
}

// gates are the requests to the notebook through Weir: from a browser that has
// opened the workspace from the portal, and with an access token.
func (w *weir) gates(ctx context.Context, b *browser, direct candidate) ([]candidate, error) {
	origin := strings.Replace(w.origin, "localhost", fmt.Sprintf("ws-%d.localhost", w.workspace), 1)
	if _, err := b.get(ctx, fmt.Sprintf("%s/workspaces/%d/open", w.origin, w.workspace)); err != nil {
		return nil, err
	}
	cookies, err := b.cookies(origin, notebookCookies)
	if err != nil {
		return nil, err
	}
	gate := func(name, credentials, authorization string) candidate {
		c := direct
		c.Name, c.network, c.address = name, "tcp", w.address
		c.request = rawRequest(origin, kernelsPath, script, credentials, authorization)
		c.servers = append([]int{w.process.pid()}, direct.servers...)
		return c
	}
	return []candidate{
		gate(nameCookie, cookies, ""),
		gate(nameToken, "Cookie: "+notebookCookies, "Authorization: Bearer "+w.members[0].token),
	}, nil
}

// pages are the signed-in pages, each with a text that only the right page has.
func (w *weir) pages(ctx context.Context, b *browser) (pages []candidate, err error) {
	for _, page := range []struct{ name, path, text string }{
		{pagePrefix + "home", "/", "notebook-0"},
		{pagePrefix + "pool", "/pool", "H100"},
		{pagePrefix + "project", fmt.Sprintf("/projects/%d", w.project), "person7@example.org"},
		{pagePrefix + "launch", fmt.Sprintf("/launch?project_id=%d", w.project), "Stub notebook"},
	} {
		c, err := pageOf(ctx, b, page.name, w.origin, page.path, page.text)
		if err != nil {
			return nil, err
		}
		c.servers = []int{w.process.pid()}
		pages = append(pages, c)
	}
	return pages, nil
}

// firstReads are pages, each read once after each change of what it shows: a workspace's
// name, or the environment's. That a page shows a change at once is checked first.
func (w *weir) firstReads(ctx context.Context, b *browser, pages []candidate) (list []candidate, err error) {
	n := 0
	name := func() string { n++; return fmt.Sprintf("notebook-0%d", n%10) }
	rename := func(ctx context.Context, name string) error {
		return w.members[0].call(ctx, "PUT", fmt.Sprintf("/workspaces/%d", w.workspace), fields{"name": name}, nil)
	}
	environment := func(ctx context.Context, name string) error {
		changed := maps.Clone(w.environment)
		changed["name"] = name
		return w.admin.call(ctx, "PUT", fmt.Sprintf("/environments/%d", w.environmentID), changed, nil)
	}
	for _, first := range []struct {
		page, path string
		change     func(context.Context, string) error
	}{
		{"home", "/", rename},
		{"project", fmt.Sprintf("/projects/%d", w.project), rename},
		{"launch", fmt.Sprintf("/launch?project_id=%d", w.project), environment},
	} {
		i := slices.IndexFunc(pages, func(c candidate) bool { return c.Name == pagePrefix+first.page })
		c := pages[i]
		c.Name, c.alone = c.Name+suffixFirst, true
		c.before = func(ctx context.Context) error { return first.change(ctx, name()) }
		for range 2 {
			changed := name()
			if err := first.change(ctx, changed); err != nil {
				return nil, err
			}
			seen, err := b.get(ctx, w.origin+first.path)
			if err != nil {
				return nil, err
			}
			if !strings.Contains(seen, changed) {
				return nil, fmt.Errorf("%s does not show the name %s at once", first.path, changed)
			}
		}
		list = append(list, c)
	}
	return list, nil
}
