package config

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"weir/models"
	"weir/pool/broker"
	"weir/storage/files"
	"weir/storage/nfs"
	"weir/storage/rules"
	"weir/workspaces/kube"
)

// load parses args for a command that has the named settings, with env as the
// whole environment.
func load(t *testing.T, env map[string]string, args []string, only ...string) (Config, error) {
	t.Helper()
	cmd := &cobra.Command{Use: "test"}
	AddFlags(cmd, only...)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return loadFrom(cmd, func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDefaults(t *testing.T) {
	c, err := load(t, nil, []string{"--data-dir", "/d"})
	if err != nil {
		t.Fatal(err)
	}
	c.changed = nil
	want := Config{
		Listen: "127.0.0.1:8080", AppsDomain: "localhost", DataDir: "/d", SandboxUID: 62000, IDRange: rules.IDRange{First: 1_900_000_000, Last: 1_900_999_999}, PlacementPolicy: "weir", Runtime: "local", SharedDir: "/d/shared",
		PerGPU:       models.Resources{GPUMemoryMiB: 40 << 10, CPUMilli: 8000, MemoryMiB: 32 << 10, StorageMiB: 100 << 10},
		Launch:       models.LaunchParameters{IdleMinutes: new(int64(0)), GPUIdleMinutes: new(int64(240)), KernelIdleMinutes: new(int64(5))},
		Reservations: broker.Rules{MaxAhead: 2160 * time.Hour, MaxDuration: 168 * time.Hour, Budget: 40 * time.Hour, UseWithin: 15 * time.Minute, Objectives: broker.Objectives{Placement: broker.Pack}},
		Kube:         kube.Config{Instance: "weir", Prefix: "weir-p-", CPUShare: 25, Grace: 5 * time.Second, GPUBackend: kube.BackendWeir},
		Files: files.Settings{TrashAge: 720 * time.Hour, VersionAge: 720 * time.Hour, SweepEvery: time.Minute, ScanEvery: 24 * time.Hour, ScanRate: 5000,
			Grace: 168 * time.Hour, Archive: files.DefaultArchiveLimits},
		SessionLifetime: 12 * time.Hour, InvitationLifetime: 7 * 24 * time.Hour, PasswordLinkLifetime: time.Hour, OIDC: OIDC{GroupsClaim: "groups", SessionMax: 12 * time.Hour}, ShutdownGrace: 10 * time.Second, DeploymentMoveAfter: 5 * time.Minute,
		LogLevel: slog.LevelInfo, LogFormat: "auto",
		AgentsListen: "127.0.0.1:8443", AuthorityFile: "/d/authority.pem", AgentCertificateLifetime: 24 * time.Hour, AgentHeartbeat: 2 * time.Second,
		StateDir: "/d/agent",
		NFS:      nfs.Config{Root: "/d/shared", Dir: "/d/nfs", Listen: netip.MustParseAddrPort("0.0.0.0:2049"), Path: "/weir"},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %#v, want %#v", c, want)
	}
	if c.SQLiteFile() != "/d/weir.db" || c.TLS() {
		t.Errorf("SQLite file %s, TLS %t", c.SQLiteFile(), c.TLS())
	}
}

func TestPrecedence(t *testing.T) {
	file := writeConfig(t, "listen: file:1\napps-domain: file\nsession-lifetime: 1h\nlog-level:\n")
	env := map[string]string{
		"WEIR_CONFIG": file, "WEIR_LISTEN": "env:2", "WEIR_APPS_DOMAIN": "env", "WEIR_SHUTDOWN_GRACE": "",
	}
	c, err := load(t, env, []string{"--listen", "flag:3"})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s %s %s %s %s", c.Listen, c.AppsDomain, c.SessionLifetime, c.ShutdownGrace, c.LogLevel)
	if want := "flag:3 env 1h0m0s 10s INFO"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestEveryMistakeIsToldAtOnce(t *testing.T) {
	file := writeConfig(t, "listen: nowhere\ncolour: blue\nsandbox-uid: [1]\nlog-format: xml\nlog-format: json\nlog-level: loud\n")
	env := map[string]string{
		"WEIR_SESSION_LIFETIME": "soon", "WEIR_APPS_DOMAIN": "a b", "WEIR_SHUTDOWN_GRACE": "-1s",
		"WEIR_DATABASE_URL": "mysql://root:hunter2@db/weir", "WEIR_AGENTS_LISTEN": "nowhere", "WEIR_AGENT_HEARTBEAT": "11s",
		"WEIR_AGENT_CERTIFICATE_LIFETIME": "59s",
	}
	_, err := load(t, env, []string{"--config", file, "--simulate-gpus", "v100:1", "--external-url", "ftp://x", "--agents-url", "http://x"})
	var usage *UsageError
	if !errors.As(err, &usage) {
		t.Fatalf("got %v, want a usage error", err)
	}
	for _, want := range []string{
		file + ":1: listen: ", file + ":2: colour: unknown setting", file + ":3: sandbox-uid: ",
		file + ":4: log-format: ", file + ":5: log-format: is set more than once", file + ":6: log-level: ",
		"WEIR_SESSION_LIFETIME: ", "WEIR_APPS_DOMAIN: ", "WEIR_SHUTDOWN_GRACE: ", "WEIR_DATABASE_URL: ",
		"--simulate-gpus: ", "--external-url: ", "--agents-url: ", "WEIR_AGENTS_LISTEN: ", "WEIR_AGENT_HEARTBEAT: ", "WEIR_AGENT_CERTIFICATE_LIFETIME: ",
	} {
		if !strings.Contains(err.Error(), "\n  "+want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error shows a password: %v", err)
	}
}

func TestConfigFileProblems(t *testing.T) {
	for text, want := range map[string]string{
		"- listen\n":      "must be a mapping",
		"listen: [\n":     "yaml:",
		"a: 1\n":          "a: unknown setting",
		"listen: {a: 1}":  "listen: must be a single value",
		"":                "",
		"# only this\n\n": "",
		"null":            "",
	} {
		_, err := load(t, nil, []string{"--config", writeConfig(t, text)})
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%q: got %s, want %q", text, got, want)
		}
	}
	_, err := load(t, map[string]string{"WEIR_CONFIG": "/does/not/exist"}, nil)
	if err == nil || !strings.Contains(err.Error(), "WEIR_CONFIG: open /does/not/exist") {
		t.Errorf("got %v", err)
	}
}

func TestValues(t *testing.T) {
	for _, c := range []struct {
		setting, text string
		ok            bool
	}{
		{"listen", ":8080", true}, {"listen", "[::1]:0", true}, {"listen", "h:65536", false}, {"listen", "h:http", false},
		{"external-url", "https://weir.example.org/", true}, {"external-url", "http://localhost:8080", true},
		{"external-url", "https://weir.example.org/sub", false}, {"external-url", "https://u@weir.example.org", false},
		{"external-url", "https://", false},
		{"apps-domain", "Apps.Example.org", true}, {"apps-domain", "apps.example.org:80", false}, {"apps-domain", "-a", false},
		{"database-url", "postgres://postgres@/weir?host=%2Frun%2Fpg", true}, {"database-url", "host=db user=x", false},
		{"database-url", "postgres://[::1", false},
		{"simulate-gpus", "h100:8", true}, {"simulate-gpus", "A100:4, h100:2", true}, {"simulate-gpus", "h100", false},
		{"simulate-gpus", "h100:0", false},
		{"reservation-budget", "0s", false}, {"reservation-use-within", "1m", true}, {"reservation-max-ahead", "2161h", false}, {"reservation-max-duration", "2h", true},
		{"reservation-placement", "spread", true}, {"client-zones", "a=10.0.0.0/8@h:1", true}, {"client-zones", "a", false}, {"reservation-gpu-models", "training=h100,a100;batch=t4", true},
		{"reservation-gpu-models", "play=h100", false}, {"reservation-gpu-models", "batch=", false}, {"reservation-gpu-models", "batch=t4;batch=l4", false},
		{"idle-timeout", "90m", true}, {"idle-timeout", "0s", true}, {"idle-timeout", "90s", false}, {"gpu-idle-timeout", "-1h", false}, {"gpu-idle-timeout", "8761h", false},
		{"simulate-gpus", "h100:9", false}, {"simulate-gpus", "h100:1,h100:1", false},
		{"sandbox-uid", "1000", true}, {"sandbox-uid", "0", false}, {"sandbox-uid", "4294967295", false},
		{"id-range", "", true}, {"id-range", "100000-109999", true}, {"id-range", "100000-109998", false}, {"id-range", "60000-160000", false},
		{"id-range", "2147000000-2147483648", false}, {"id-range", "100000", false}, {"id-range", "300000-200000", false}, {"id-range", "a-b", false},
		{"session-lifetime", "1m", true}, {"session-lifetime", "59s", false}, {"session-lifetime", "5", false},
		{"shutdown-grace", "0s", true}, {"shutdown-grace", "-1s", false},
		{"trash-retention", "1h", true}, {"trash-retention", "59m", false}, {"version-retention", "-1h", false}, {"storage-grace", "0s", true}, {"storage-grace", "a", false},
		{"storage-sweep-interval", "2h", false}, {"storage-scan-interval", "1s", false}, {"storage-scan-rate", "0", false}, {"storage-scan-rate", "1000000", true},
		{"archive-max-entries", "10000001", false}, {"archive-max-entries", "-1", false}, {"archive-max-size", "1GiB", true}, {"archive-max-size", "much", false},
		{"archive-max-ratio", "10000", true}, {"archive-max-ratio", "0", false},
		{"log-level", "DEBUG", true}, {"log-level", "info+2", false}, {"log-format", "json", true}, {"log-format", "", false},
	} {
		_, err := load(t, nil, []string{"--" + c.setting, c.text})
		if (err == nil) != c.ok {
			t.Errorf("--%s %q: %v", c.setting, c.text, err)
		}
	}
	c, err := load(t, nil, []string{"--simulate-gpus", "A100:4, h100:2", "--external-url", "https://w/"})
	if want := []SimulatedGPUs{{"a100", 4}, {"h100", 2}}; err != nil || !reflect.DeepEqual(c.SimulateGPUs, want) {
		t.Errorf("got %v, %v, want %v", c.SimulateGPUs, err, want)
	}
	if c.ExternalURL != "https://w" || !c.TLS() {
		t.Errorf("got %q, TLS %t", c.ExternalURL, c.TLS())
	}
}

// A command with few settings neither offers nor checks the others, but
// accepts the one file that all commands share.
func TestSubset(t *testing.T) {
	file := writeConfig(t, "listen: nowhere\ndata-dir: /d\n")
	c, err := load(t, map[string]string{"WEIR_SANDBOX_UID": "x"}, []string{"--config", file}, ForStore...)
	if err != nil || c.DataDir != "/d" || c.Listen != "127.0.0.1:8080" {
		t.Errorf("got %v, %v", c, err)
	}
	cmd := &cobra.Command{}
	AddFlags(cmd, ForStore...)
	if cmd.Flags().Lookup("listen") != nil {
		t.Error("the subset offers --listen")
	}
	for _, name := range ForStore {
		if cmd.Flags().Lookup(name) == nil {
			t.Errorf("there is no setting %s", name)
		}
	}
}

func TestSecretsStayOutOfLogs(t *testing.T) {
	const secret = "hunter2"
	c, err := load(t, nil, []string{"--database-url", "postgres://weir:" + secret + "@db/weir"})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	c.Logger(&log).Info("starting", "config", c)
	text := log.String() + fmt.Sprintf("%v %+v %s", c, c, c)
	if strings.Contains(text, secret) || !strings.Contains(log.String(), `"database-url":"(set)"`) {
		t.Errorf("got %s", text)
	}
}

func TestDefaultDataDir(t *testing.T) {
	env := map[string]string{"HOME": "/home/u"}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	if got := defaultDataDir(0, lookup); got != "/var/lib/weir" {
		t.Error(got)
	}
	if got := defaultDataDir(1000, lookup); got != "/home/u/.local/share/weir" {
		t.Error(got)
	}
	env["XDG_DATA_HOME"] = "/x"
	if got := defaultDataDir(1000, lookup); got != "/x/weir" {
		t.Error(got)
	}
}

func TestNearestRequiresClientZones(t *testing.T) {
	if _, err := load(t, nil, []string{"--reservation-placement", "nearest"}); err == nil || !strings.Contains(err.Error(), "nearest requires client-zones") {
		t.Error(err)
	}
	c, err := load(t, nil, []string{"--reservation-placement", "nearest", "--client-zones", "a=10.0.0.0/8@h:1"})
	if err != nil || c.Reservations.Objectives.Placement != broker.Nearest || !c.Reservations.Objectives.Zones.Has("a") {
		t.Errorf("%+v, %v", c.Reservations.Objectives, err)
	}
}
