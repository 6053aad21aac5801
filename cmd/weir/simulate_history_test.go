package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/cmd/weir/cli"
	"weir/cmd/weir/config"
	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// fillHistory gives a database one machine with two GPUs, and a morning on
// it: two members took a GPU each for four hours, one waited for an hour and
// gave up, one wanted three GPUs and was refused.
func fillHistory(t *testing.T, cfg config.Config) {
	t.Helper()
	db, err := openStore(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	user := storetest.User(t, db, "ada@example.org", false)
	start := time.Date(2026, 5, 4, 8, 0, 0, 0, time.UTC)
	at := func(hour int) *time.Time { when := start.Add(time.Duration(hour) * time.Hour); return &when }
	storetest.InTx(t, db, func(q *store.Queries) error {
		provider := models.Provider{Name: "one", State: models.ProviderOnline, SeenAt: start, Version: 1, CreatedAt: start}
		gone := models.Provider{Name: "gone", State: models.ProviderOffline, Machine: "gone", SeenAt: start, Version: 1, CreatedAt: start}
		project := models.Project{Name: "vision", StartsAt: start, Version: 1, CreatedAt: start, Priority: 50}
		for _, create := range []func() error{
			func() error { return q.CreateProvider(&provider) },
			func() error { return q.CreateProvider(&gone) },
			func() error { return q.CreateProject(&project) },
		} {
			if err := create(); err != nil {
				return err
			}
		}
		for i, id := range []int64{provider.ID, provider.ID, gone.ID} {
			if err := q.CreateDevice(&models.Device{ProviderID: id, UUID: fmt.Sprint("GPU-", i), Number: int64(i), Model: "NVIDIA H100 80GB HBM3",
				MemoryMiB: 81920, Present: true, Sharing: models.SharingTimeSlicing, Cores: 100, Version: 1, CreatedAt: start}); err != nil {
				return err
			}
		}
		role := models.Role{ProjectID: project.ID, Name: "engineer", Permission: models.PermissionMember, Version: 1, CreatedAt: start}
		if err := q.CreateRole(&role); err != nil {
			return err
		}
		member := models.Member{ProjectID: project.ID, UserID: user.ID, RoleID: role.ID, Version: 1, CreatedAt: start}
		if err := q.CreateMember(&member); err != nil {
			return err
		}
		env := models.Environment{Name: "jupyter", Language: "python", LanguageVersion: "3.11", Version: 1, CreatedAt: start}
		if err := q.CreateEnvironment(&env); err != nil {
			return err
		}
		for i, w := range []models.Workspace{
			{RequestedAt: *at(0), StartedAt: at(0), EndedAt: at(4), Generation: 1},
			{RequestedAt: *at(0), StartedAt: at(0), EndedAt: at(4), Generation: 1},
			{RequestedAt: *at(1), EndedAt: at(2)},
		} {
			w.ProjectID, w.MemberID, w.UserID, w.EnvironmentID = project.ID, member.ID, user.ID, env.ID
			w.Name, w.State, w.Version = fmt.Sprint(i), models.StateStopped, 1
			w.Demand = models.Demand{GPUs: 1, Cores: 100, GPUModel: "h100", CPUMilli: 1000}
			if err := q.CreateWorkspace(&w, models.Say("Requested.")); err != nil {
				return err
			}
		}
		return q.CreateDecisionRecord(&models.DecisionRecord{At: *at(2), ProjectID: project.ID, UserID: user.ID, Outcome: models.OutcomeRefused, GPUs: 3, Cores: 100})
	})
}

func simulateHistory(args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	code = weir(append([]string{"simulate", "placement", "--history"}, args...), &o, &e)
	return code, o.String(), e.String()
}

func TestSimulateHistory(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			cfg := config.Config{DataDir: t.TempDir()}
			where := []string{"--data-dir", cfg.DataDir}
			if dialect == "postgres" {
				cfg.DatabaseURL = storetest.Postgres(t)
				where = []string{"--database-url", cfg.DatabaseURL}
			}
			fillHistory(t, cfg)
			checkHistoryJSON(t, where)
			checkHistoryTable(t, where)
		})
	}
}

func checkHistoryJSON(t *testing.T, where []string) {
	code, out, errOut := simulateHistory(append(where, "--add", "h100:8", "--policy", "best-fit,weir", "--output", "json")...)
	var report struct {
		Requests, Assumed int
		AssumedSeconds    float64 `json:"assumed_seconds"`
		Added             []string
		Policies          []struct {
			Policy    string
			Now, Then struct {
				Machines, GPUs, Placed, Refused, Waited int
				Waits                                   struct {
					Max float64 `json:"max_seconds"`
				}
				Points, Unmet []map[string]any
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &report); code != cli.ExitOK || errOut != "" || err != nil || len(report.Policies) != 2 {
		t.Fatalf("exit code %d, says %s, prints %s, %v", code, errOut, out, err)
	}
	if report.Requests != 4 || report.Assumed != 2 || report.AssumedSeconds != 4*3600 || !slices.Equal(report.Added, []string{"h100:8"}) {
		t.Errorf("got %+v", report)
	}
	for _, p := range report.Policies {
		now, then := p.Now, p.Then
		if now.Machines != 1 || now.GPUs != 2 || now.Placed != 3 || now.Refused != 1 || now.Waited != 1 || now.Waits.Max != 3*3600 || len(now.Unmet) != 2 {
			t.Errorf("%s now: %+v", p.Policy, now)
		}
		if then.Machines != 2 || then.GPUs != 10 || then.Placed != 4 || then.Refused+then.Waited+len(then.Unmet) != 0 || len(then.Points) != len(now.Points) {
			t.Errorf("%s then: %+v", p.Policy, then)
		}
	}
}

func checkHistoryTable(t *testing.T, where []string) {
	code, out, errOut := simulateHistory(append(where, "--add", "NVIDIA L40S/46068:4x2", "--add", "b200:1")...)
	if code != cli.ExitOK || errOut != "" {
		t.Fatalf("exit code %d, says %s", code, errOut)
	}
	for _, words := range []string{"Replayed 4 GPU requests; 2 were never served and are assumed to last 4h0m0s",
		"weir now with NVIDIA L40S/46068:4x2, b200:1", "machines 1 4", "GPUs 2 11", "refused 1 0", "longest wait 3h0m0s 3h0m0s",
		"GPU hours used 12.0 24.0", "any 3 100 – 1 0 0s", "h100 1 100 – 0 1 3h0m0s"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), words) {
			t.Errorf("no %q in %s", words, out)
		}
	}
	if code, out, _ := simulateHistory(where...); code != cli.ExitOK || strings.Contains(out, "with") {
		t.Errorf("nothing was added: %s", out)
	}
}

func TestSimulateHistoryRefuses(t *testing.T) {
	dir, empty := t.TempDir(), t.TempDir()
	store, err := openStore(t.Context(), config.Config{DataDir: empty})
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	old := t.TempDir()
	if err := os.WriteFile(filepath.Join(old, "weir.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"--inflate 1 --seeds 1 --scale 2 --nodes f --pods f", cli.ExitUsage, []string{"--inflate: cannot be used with --history", "--seeds:", "--scale:", "--nodes:", "--pods:"}},
		{"--add h300:8 --add h100 --policy nosuch --output xml", cli.ExitUsage, []string{"h300", `"h100" is not MODEL:GPUS`, `unknown policy "nosuch"`, "--output"}},
		{"--data-dir " + dir, cli.ExitError, []string{"no database found", dir}},
		{"--data-dir " + empty, cli.ExitError, []string{"no GPU requests"}},
		{"--data-dir " + old, cli.ExitError, []string{"version 0", "weir migrate"}},
		{"--data-dir=relative --database-url=x", cli.ExitUsage, []string{"--database-url"}},
	} {
		code, out, errOut := simulateHistory(strings.Fields(c.args)...)
		missing := slices.ContainsFunc(c.says, func(word string) bool { return !strings.Contains(errOut, word) })
		if code != c.code || missing || out != "" {
			t.Errorf("--history %s: exit code %d, want %d; prints %q, says %s", c.args, code, c.code, out, errOut)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "weir.db")); !os.IsNotExist(err) {
		t.Errorf("a database was made: %v", err)
	}
	code, out, errOut := simulate("--add", "h100:8", "--data-dir", dir)
	if code != cli.ExitUsage || out != "" || !strings.Contains(errOut, "--add: requires --history") || !strings.Contains(errOut, "--data-dir") {
		t.Errorf("a trace with --add: exit code %d, prints %q, says %s", code, out, errOut)
	}
}
