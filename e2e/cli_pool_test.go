package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/models"
)

// shell runs commands against a server over its REST API, as one account.
type shell struct {
	t   testing.TB
	env []string
}

func (s *server) shell(token string) shell {
	return shell{s.t, []string{"WEIR_URL=" + s.url, "WEIR_TOKEN=" + token}}
}

// run wants an exit code, and returns what is printed.
func (s shell) run(want int, args ...string) (out, errOut string) {
	s.t.Helper()
	code, out, errOut := weir(s.t, "", s.env, args...)
	if code != want {
		s.t.Fatalf("weir %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, out, errOut)
	}
	return out, errOut
}

// says wants words in what a command prints.
func (s shell) says(words []string, args ...string) {
	s.t.Helper()
	out, _ := s.run(0, args...)
	for _, word := range words {
		if !strings.Contains(out, word) {
			s.t.Errorf("weir %s: no %q in\n%s", strings.Join(args, " "), word, out)
		}
	}
}

// fails wants an exit code, nothing on standard output, and words on standard
// error.
func (s shell) fails(want int, words string, args ...string) {
	s.t.Helper()
	out, errOut := s.run(want, args...)
	if out != "" || !strings.Contains(errOut, words) {
		s.t.Errorf("weir %s: it says %q and %q, not %q", strings.Join(args, " "), out, errOut, words)
	}
}

// read reads the JSON that a command prints.
func (s shell) read(v any, args ...string) {
	s.t.Helper()
	out, _ := s.run(0, append(args, "--output", "json")...)
	if err := json.Unmarshal([]byte(out), v); err != nil {
		s.t.Fatalf("weir %s prints %s: %v", strings.Join(args, " "), out, err)
	}
}

// lender is a provider as the command line shows it to programs.
type lender struct {
	ID       int64        `json:"id"`
	Name     string       `json:"name"`
	State    string       `json:"state"`
	GPUCode  string       `json:"gpu_code"`
	OwnerID  int64        `json:"owner_id"`
	RecallAt *time.Time   `json:"recall_at"`
	Terms    models.Terms `json:"terms"`
	Devices  []struct {
		ID      int64  `json:"id"`
		UUID    string `json:"uuid"`
		Sharing string `json:"sharing"`
	} `json:"devices"`
}

func (s shell) lender(name string) (p lender) {
	s.t.Helper()
	s.read(&p, "provider", "show", name)
	return p
}

// joined is a machine whose agent was let in by the command line alone, as a
// provider called desk.
func joined(t *testing.T, s *server, admin shell) *machine {
	t.Helper()
	m := newMachine(t, s, "desk")
	code, hint := admin.run(0, "authorize", m.gpuCode(), "--name", "desk")
	if strings.TrimSpace(code)+"\n" != code || strings.ContainsAny(strings.TrimSpace(code), " \n") || !strings.Contains(hint, "weir agent --server "+s.url) {
		t.Fatalf("the code is %q, and how to use it %q", code, hint)
	}
	m.start(strings.TrimSpace(code))
	s.beats()
	return m
}

// A machine is let in, told its terms, drained, recalled and taken out again,
// by nothing but the command line.
func TestProviderByCommandLine(t *testing.T) {
	t.Parallel()
	s := newServer(t, quick(options{gpus: "h200:1"}))
	admin := s.shell(s.admin())
	m := joined(t, s, admin)
	desk := admin.lender("desk")
	admin.says([]string{"desk", "online", "NVIDIA H100", "NVIDIA H200"}, "provider", "list")
	admin.says([]string{desk.GPUCode, "127.0.0.1", "100 of each GPU", "always", desk.Name + " (id "}, "provider", "show", "desk")

	terms := filepath.Join(t.TempDir(), "terms.json")
	if err := os.WriteFile(terms, []byte(`{"cores":70,"grace_minutes":15}`), 0o600); err != nil {
		t.Fatal(err)
	}
	admin.says([]string{"60 of each GPU", "mon-fri 20:00-08:00; sat,sun 00:00-24:00 (Asia/Shanghai)", "30m"}, "provider", "set", "desk", "--cores", "60",
		"--hours", "mon-fri 20:00-08:00", "--hours", "sat,sun 00:00-24:00", "--time-zone", "Asia/Shanghai", "--grace", "30m")
	admin.says([]string{"70 of each GPU", "always", "15m"}, "provider", "set", "desk", "--terms-file", terms, "--owner", "operator@example.org")
	first := fmt.Sprint(desk.Devices[0].ID)
	admin.says([]string{"rack"}, "provider", "set", fmt.Sprint(desk.ID), "--name", "rack", "--devices", first)
	now := admin.lender("rack")
	if now.ID != desk.ID || now.OwnerID == 0 || now.Terms.Cores != 70 || len(now.Terms.Devices) != 1 {
		t.Errorf("it is %+v", now)
	}
	admin.run(0, "provider", "set", "rack", "--name", "desk", "--devices", "all")

	admin.says([]string{"desk", "is draining"}, "provider", "drain", "desk")
	admin.says([]string{"is online"}, "provider", "resume", "desk")
	admin.fails(2, "--yes", "provider", "recall", "desk", "--grace", "1h")
	admin.says([]string{"is recalled", "its shares end at"}, "provider", "recall", "desk", "--grace", "1h", "--reason", "repairs", "--yes")
	admin.says([]string{"Recall reason", "repairs"}, "provider", "show", "desk")
	admin.says([]string{"is online"}, "provider", "resume", "desk")

	m.stop()
	m.gpus = "h100:3"
	m.start("")
	s.awaitProvider(models.ProviderPending, time.Time{})
	admin.says([]string{"is online"}, "provider", "accept", "desk")
	eventually(t, ready, func() string { // with the next beat
		if now = admin.lender("desk"); now.GPUCode == desk.GPUCode || len(now.Devices) != 3 {
			return fmt.Sprintf("accepted, it is %+v", now)
		}
		return ""
	})

	admin.fails(2, "--yes", "provider", "revoke", "desk", "--no-interactive")
	admin.says([]string{"is lost"}, "provider", "revoke", "desk", "--yes")
	if exit := m.wait(); exit != 3 {
		t.Errorf("shut out, the agent ended with exit code %d", exit)
	}
	admin.says([]string{"is removed"}, "provider", "remove", "desk", "--yes")
	admin.fails(4, "no provider named", "provider", "show", "desk")
}

func TestDeviceByCommandLine(t *testing.T) {
	t.Parallel()
	s := newServer(t, quick(options{gpus: "h100:2"}))
	admin := s.shell(s.admin())
	var all struct{ Items []lender }
	admin.read(&all, "provider", "list")
	if len(all.Items) != 1 || len(all.Items[0].Devices) != 2 {
		t.Fatalf("there are %+v", all.Items)
	}
	d := all.Items[0].Devices[0]
	admin.says([]string{d.UUID, "NVIDIA H100", "(simulated)", "MIG profiles"}, "device", "show", d.UUID)
	admin.says([]string{d.UUID + ": exclusive"}, "device", "share", fmt.Sprint(d.ID), "--mode", "exclusive")
	admin.says([]string{"exclusive"}, "device", "show", fmt.Sprint(d.ID))
	admin.says([]string{": time-slicing, mixed"}, "device", "share", d.UUID, "--mode", "time-slicing", "--mixed")
	admin.fails(2, "layout", "device", "share", d.UUID, "--mode", "mig", "--layout", "9g.1tb")
	admin.fails(2, "layout", "device", "share", d.UUID, "--mode", "mig")
	admin.fails(4, "no device", "device", "show", "GPU-none")
	admin.fails(4, "", "device", "telemetry", "123456")
	eventually(t, ready, func() string {
		var v struct {
			Buckets []struct{ Seconds, Samples int64 }
		}
		admin.read(&v, "device", "telemetry", d.UUID, "--span", "day")
		if len(v.Buckets) == 0 || v.Buckets[0].Seconds != 60 || v.Buckets[0].Samples == 0 {
			return fmt.Sprintf("telemetry is %+v", v)
		}
		return ""
	})
	admin.says([]string{"UTILIZATION", "°C", " W"}, "device", "telemetry", d.UUID)
}

// Who waits is seen by everybody, and unmet demand by administrators.
func TestPoolByCommandLine(t *testing.T) {
	t.Parallel()
	s := newServer(t, quick(options{gpus: "h100:2"}))
	admin := s.shell(s.admin())
	admin.says([]string{"200 available, 0 in use, 200 total", "The queue is empty."}, "pool")
	var all struct{ Items []lender }
	admin.read(&all, "provider", "list")
	admin.run(0, "provider", "drain", fmt.Sprint(all.Items[0].ID))

	team := s.team("vision", share, "ann")
	stranger := s.team("audio", share, "eve")
	body := launchBody(team.Project, "notebook")
	body["when_insufficient"] = "wait"
	team.Members[0].must("POST", "/workspaces", body, nil)

	ann, eve := s.shell(team.Members[0].token), s.shell(stranger.Members[0].token)
	admin.says([]string{"draining", "POSITION", "ann", "vision", "50 GPU cores", "UNMET DEMAND", "any model"}, "pool")
	ann.says([]string{"POSITION", "vision", "notebook", "50 GPU cores"}, "pool")
	out, _ := eve.run(0, "pool")
	for _, word := range []string{"ann", "vision", "notebook", "UNMET"} {
		if strings.Contains(out, word) {
			t.Errorf("a stranger reads %q in\n%s", word, out)
		}
	}
	var v struct {
		Waiting []struct {
			Place     int `json:"position"`
			Anonymous bool
			Estimate  struct {
				Words string `json:"text"`
			}
		}
		Unmet []struct{ Waiting int64 }
	}
	eve.read(&v, "pool")
	if len(v.Waiting) != 1 || v.Waiting[0].Place != 1 || !v.Waiting[0].Anonymous || v.Waiting[0].Estimate.Words == "" || len(v.Unmet) != 0 {
		t.Errorf("a stranger reads %+v", v)
	}

	home := fmt.Sprint(all.Items[0].ID)
	eve.fails(3, "does not allow", "provider", "resume", home)
	eve.fails(3, "does not allow", "authorize", "0000-0000-0000-0000")
	eve.fails(3, "does not allow", "device", "share", fmt.Sprint(all.Items[0].Devices[0].ID), "--mode", "exclusive")
}

// Each kind of failure has its exit code, and none prints a secret.
func TestCommandLineFailures(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{gpus: "h100:1"})
	admin := s.shell(s.admin())
	var all struct{ Items []lender }
	admin.read(&all, "provider", "list")
	home := fmt.Sprint(all.Items[0].ID)

	admin.fails(2, "terms.cores: ", "provider", "set", home, "--cores", "500")
	admin.fails(2, "terms.devices: ", "provider", "set", home, "--devices", "99999")
	admin.fails(2, "terms.projects: ", "provider", "set", home, "--projects", "99999")
	admin.fails(2, "terms.time_zone: ", "provider", "set", home, "--time-zone", "Nowhere")
	admin.fails(2, "grace_minutes: ", "provider", "recall", home, "--grace", "1000h", "--yes")
	admin.fails(2, "16 letters", "authorize", "nonsense")
	admin.fails(2, "owner_id", "authorize", "0000-0000-0000-0000", "--owner", "99999")
	admin.fails(4, "nobody@example.org", "authorize", "0000-0000-0000-0000", "--owner", "nobody@example.org")
	admin.fails(4, "", "provider", "drain", "99999")
	admin.fails(5, "machine that the portal runs on", "provider", "remove", home, "--yes")
	admin.fails(5, "has no active agent", "provider", "accept", home)

	wrong := "weir_wrong_" + strings.Repeat("x", 30)
	out, errOut := s.shell(wrong).run(3, "pool")
	if out != "" || !strings.Contains(errOut, "access token") || strings.Contains(errOut, wrong) {
		t.Errorf("with a wrong token it says %q%q", out, errOut)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(s.admin()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.shell("").fails(2, "no access token", "pool")
	s.shell("").run(0, "pool", "--token-file", file)
	nowhere := fmt.Sprintf("http://127.0.0.1:%d", freePort(t))
	admin.fails(6, nowhere, "pool", "--server", nowhere)
	s.stop()
	admin.fails(6, "cannot reach the server", "provider", "list")
	s.start()
	admin.run(0, "provider", "list")
}
