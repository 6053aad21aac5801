package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"weir/models/store"
	"weir/policies"
)

const password = "correct horse battery staple"

// admin is the access token of a platform administrator.
func (s *server) admin() string {
	s.t.Helper()
	s.adminOnce.Do(func() {
		s.accounts(func(ctx context.Context, a *policies.Accounts) error {
			_, err := a.CreateUser(ctx, policies.System("admin"), policies.NewUser{Email: "operator@example.org", Name: "Operator",
				Password: password, Admin: true})
			return err
		})
		s.adminToken = s.tokenOf("operator@example.org")
	})
	return s.adminToken
}

// tokenOf makes an access token for an account.
func (s *server) tokenOf(email string) (secret string) {
	s.t.Helper()
	s.accounts(func(ctx context.Context, a *policies.Accounts) (err error) {
		_, secret, err = a.CreateTokenFor(ctx, policies.System("admin"), email, policies.NewToken{Name: "e2e", Lifetime: policies.DefaultTokenLifetime})
		return err
	})
	return secret
}

// accounts changes accounts as “weir admin” does, without the start of a program each time.
func (s *server) accounts(change func(ctx context.Context, a *policies.Accounts) error) {
	s.t.Helper()
	ctx := context.Background() // also when the test's has ended
	db, err := store.Open(ctx, s.opts.database, filepath.Join(s.dir, "weir.db"))
	if err != nil {
		s.t.Fatal(err)
	}
	access, err := policies.NewAccess()
	if err == nil {
		err = change(policies.WithOrigin(ctx, policies.Origin{Via: policies.ViaCommand}), policies.NewAccounts(db, access))
	}
	if err = errors.Join(err, db.Close()); err != nil {
		s.t.Fatal(err)
	}
}

// browser is a client with cookies that reaches every name below localhost,
// as browsers do.
func (s *server) browser() *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	transport := s.transport
	if transport == nil {
		address := "127.0.0.1:" + strconv.Itoa(s.port)
		transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}}
	}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: transport, Timeout: time.Minute}
}

// api is the REST API as one caller sees it.
type api struct {
	s      *server
	token  string
	header http.Header // beside the usual
}

func (s *server) api(token string) api { return api{s: s, token: token} }

// problem is a refusal.
type problem struct {
	Status int    `json:"status"`
	Kind   string `json:"kind"`
	Detail string `json:"detail"`
	Errors []struct {
		Field  string `json:"field"`
		Reason string `json:"reason"`
	} `json:"errors"`
}

// call makes one request and reads the answer into out, unless that is nil;
// 0 is the status of a connection that broke.
func (a api) call(method, path string, body, out any) int {
	status, answer, err := a.raw(method, path, body)
	if err != nil {
		a.s.t.Logf("%s %s: %v", method, path, err)
		return 0
	}
	if out != nil && len(answer) > 0 {
		if err := json.Unmarshal(answer, out); err != nil {
			a.s.t.Errorf("%s %s answers %d %s: %v", method, path, status, answer, err)
		}
	}
	return status
}

var apiClient = &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

func (a api) raw(method, path string, body any) (int, []byte, error) {
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, "http://127.0.0.1:"+strconv.Itoa(a.s.port)+"/api/v1"+path, in)
	if err != nil {
		return 0, nil, err
	}
	maps.Copy(req.Header, a.header)
	req.Header.Set("Authorization", "Bearer "+a.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := apiClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// keyed posts with an Idempotency-Key; 0 is the status of a connection that broke.
func (a api) keyed(key, path string, body any) (int, string) {
	a.header = http.Header{"Idempotency-Key": {key}}
	status, answer, err := a.raw("POST", path, body)
	if err != nil {
		return 0, err.Error()
	}
	return status, string(answer)
}

// must is call for what has to succeed.
func (a api) must(method, path string, body, out any) {
	a.s.t.Helper()
	if err := a.try(method, path, body, out); err != nil {
		a.s.t.Fatal(err)
	}
}

// try is must for whoever may not end the test.
func (a api) try(method, path string, body, out any) error {
	status, answer, err := a.raw(method, path, body)
	if err == nil && status >= 300 {
		err = fmt.Errorf("%d %s", status, answer)
	}
	if err == nil && out != nil && len(answer) > 0 {
		err = json.Unmarshal(answer, out)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// resources as the API writes them.
type resources struct {
	GPUCores     int64 `json:"gpu_cores"`
	GPUMemoryMiB int64 `json:"gpu_memory_mib"`
	CPUMilli     int64 `json:"cpu_milli"`
	MemoryMiB    int64 `json:"memory_mib"`
	StorageMiB   int64 `json:"storage_mib"`
}

func (r resources) times(n int64) resources {
	return resources{r.GPUCores * n, r.GPUMemoryMiB * n, r.CPUMilli * n, r.MemoryMiB * n, r.StorageMiB * n}
}

// share is what one small workspace takes.
var share = resources{GPUCores: 50, GPUMemoryMiB: 8 << 10, CPUMilli: 2000, MemoryMiB: 512}

// team is a project with one role and its members.
type team struct {
	Project, Role int64
	Name          string
	Members       []member
}

// member of a team, with an access token.
type member struct {
	User, ID    int64
	Email, Name string
	api
}

type id struct {
	ID int64 `json:"id"`
}

// team makes a project whose quota is enough for every member's peak.
func (s *server) team(name string, limit resources, members ...string) team {
	s.t.Helper()
	return s.teamWithin(name, limit.times(int64(len(members))), limit, members...)
}

// teamWithin makes a project with a quota, a role with a peak, and members
// that have an account and a token each.
func (s *server) teamWithin(name string, quota, limit resources, members ...string) team {
	s.t.Helper()
	admin := s.api(s.admin())
	var project, role id
	admin.must("POST", "/projects", map[string]any{"name": name, "quota": quota, "confirm": true, "reason": "a test"}, &project)
	projectPath := fmt.Sprintf("/projects/%d", project.ID)
	admin.must("POST", projectPath+"/roles", map[string]any{"name": "engineer", "permission": "member", "limit": limit}, &role)
	team := team{Project: project.ID, Role: role.ID, Name: name}
	for _, m := range members {
		email := m + "@example.org"
		var user, place id
		admin.must("POST", "/users", map[string]any{"email": email, "name": m, "password": password}, &user)
		admin.must("POST", projectPath+"/members", map[string]any{"email": email, "role_id": role.ID}, &place)
		team.Members = append(team.Members, member{User: user.ID, ID: place.ID, Email: email, Name: m, api: s.api(s.tokenOf(email))})
	}
	return team
}

// launchBody asks for Jupyter in a workspace of the size of share.
func launchBody(project int64, name string) map[string]any { return launchBodyIn(project, 0, name) }

// launchBodyIn is launchBody for another environment; 0 is the best match.
func launchBodyIn(project, env int64, name string) map[string]any {
	return map[string]any{"project_id": project, "environment_id": env, "name": name, "request": map[string]any{
		"gpus": 1, "cores": share.GPUCores, "gpu_memory_mib": share.GPUMemoryMiB, "cpu_milli": share.CPUMilli, "memory_mib": share.MemoryMiB}}
}

// launch launches a workspace and returns its id.
func (m member) launch(project, env int64, name string) int64 {
	m.s.t.Helper()
	var w id
	m.must("POST", "/workspaces", launchBodyIn(project, env, name), &w)
	return w.ID
}

// workspace as the API shows it.
type workspace struct {
	ID        int64     `json:"id"`
	Name      string    `json:"name"`
	ProjectID int64     `json:"project_id"`
	State     string    `json:"state"`
	Reason    string    `json:"reason"`
	LogTail   string    `json:"log_tail"`
	EndedAt   time.Time `json:"ended_at"`
}

func (w workspace) ended() bool { return w.State == "stopped" || w.State == "failed" }

func workspacePath(id int64) string { return fmt.Sprintf("/workspaces/%d", id) }

func (a api) workspace(id int64) (w workspace) {
	a.s.t.Helper()
	a.must("GET", workspacePath(id), nil, &w)
	return w
}

// await polls until a workspace is in a state.
func (a api) await(id int64, state string, within time.Duration) (w workspace) {
	a.s.t.Helper()
	eventually(a.s.t, within, func() string {
		w = a.workspace(id)
		if w.State == state {
			return ""
		}
		if w.ended() {
			a.s.t.Fatalf("workspace %d is %s, not %s: %s\n%s", id, w.State, state, w.Reason, w.LogTail)
		}
		return fmt.Sprintf("workspace %d is %s, not %s", id, w.State, state)
	})
	return w
}

// running launches Jupyter and waits until it runs.
func (m member) running(project int64, name string) workspace {
	m.s.t.Helper()
	return m.await(m.launch(project, 0, name), "running", starting)
}

// list reads all pages of a list.
func list[T any](a api, path string) (all []T) {
	a.s.t.Helper()
	for cursor := ""; ; {
		var page struct {
			Items []T    `json:"items"`
			Next  string `json:"next_cursor"`
		}
		next := path
		if cursor != "" {
			next += "?cursor=" + cursor
			if strings.Contains(path, "?") {
				next = path + "&cursor=" + cursor
			}
		}
		a.must("GET", next, nil, &page)
		all = append(all, page.Items...)
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
}

// stopWorkspaces stops everything and waits until it has ended.
func (s *server) stopWorkspaces() {
	s.t.Helper()
	admin := s.api(s.admin())
	for _, w := range list[workspace](admin, "/workspaces?state=all") {
		if !w.ended() && w.State != "stopping" {
			if status, answer, err := admin.raw("POST", workspacePath(w.ID)+"/stop", nil); status >= 300 && !strings.Contains(string(answer), "already") || err != nil {
				s.t.Errorf("stop of workspace %d, which is %s: %d %s %v", w.ID, w.State, status, answer, err)
			}
		}
	}
	eventually(s.t, gone, func() string {
		for _, w := range list[workspace](admin, "/workspaces?state=all") {
			if !w.ended() {
				return fmt.Sprintf("workspace %d is %s", w.ID, w.State)
			}
		}
		return ""
	})
}

// deviceView is a device as GET /pool shows it.
type deviceView struct {
	ID        int64 `json:"id"`
	MemoryMiB int64 `json:"memory_mib"`
	FreeCores int64 `json:"free_cores"`
	Shares    []struct {
		WorkspaceID int64 `json:"workspace_id"`
		ProjectID   int64 `json:"project_id"`
		Cores       int64 `json:"cores"`
		MemoryMiB   int64 `json:"memory_mib"`
	} `json:"shares"`
}

// devices reads GET /pool and holds it to what is true of every device at
// every instant.
func (a api) devices() (all []deviceView) {
	a.s.t.Helper()
	var pool struct {
		Providers []struct {
			Devices []deviceView `json:"devices"`
		} `json:"providers"`
	}
	a.must("GET", "/pool", nil, &pool)
	for _, p := range pool.Providers {
		all = append(all, p.Devices...)
	}
	for _, d := range all {
		var cores, memory int64
		for _, s := range d.Shares {
			cores, memory = cores+s.Cores, memory+s.MemoryMiB
		}
		if cores > 100 || memory > d.MemoryMiB {
			a.s.t.Errorf("device %d gives away %d cores and %d of %d MiB", d.ID, cores, memory, d.MemoryMiB)
		}
	}
	return all
}

// held sums the GPU cores of every workspace's shares.
func (a api) inUse() map[int64]int64 {
	a.s.t.Helper()
	inUse := map[int64]int64{}
	for _, d := range a.devices() {
		for _, s := range d.Shares {
			inUse[s.WorkspaceID] += s.Cores
		}
	}
	return inUse
}
