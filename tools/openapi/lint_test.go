package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/handlers"
)

const maxWarnings = 5

// finding is a problem that a linter reports.
type finding struct {
	rule, message, place string
	isError              bool
}

// lint runs a linter, which exits with 1 if there are findings.
func lint(t *testing.T, argv ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("%s: %v\n%s%s", argv[0], err, out, &stderr)
	}
	return out
}

func redocly(t *testing.T, tools, document string) (list []finding) {
	t.Helper()
	var report struct {
		Totals   *struct{ Errors, Warnings int }
		Problems []struct {
			RuleID, Severity, Message string
			Location                  []struct{ Pointer string }
		}
	}
	if err := json.Unmarshal(lint(t, Program(tools, "redocly"), "lint", "--extends", "recommended", "--format", "json", "--max-problems", "1000", document), &report); err != nil || report.Totals == nil {
		t.Fatalf("no report of Redocly: %v", err)
	}
	for _, p := range report.Problems {
		f := finding{rule: p.RuleID, message: p.Message, isError: p.Severity == "error"}
		if len(p.Location) > 0 {
			f.place = p.Location[0].Pointer
		}
		list = append(list, f)
	}
	return list
}

func spectral(t *testing.T, tools, document string) (list []finding) {
	t.Helper()
	rules := filepath.Join(t.TempDir(), "spectral.json")
	if err := os.WriteFile(rules, []byte(`{"extends": ["spectral:oas"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out := lint(t, Program(tools, "spectral"), "lint", "--ruleset", rules, "--format", "json", "--quiet", document)
	var report []struct {
		Code, Message string
		Path          []any
		Severity      int // 0: error, 1: warning
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("no report of Spectral: %v\n%s", err, out)
	}
	for _, p := range report {
		place, _ := json.Marshal(p.Path)
		list = append(list, finding{p.Code, p.Message, string(place), p.Severity == 0})
	}
	return list
}

// The document passes the recommended rules of Redocly and of Spectral.
func TestDocumentPassesLinters(t *testing.T) {
	tools, err := Install(t.Context())
	if errors.Is(err, ErrUnreachable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	document, err := handlers.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	for name, linter := range map[string]func(*testing.T, string, string) []finding{"redocly": redocly, "spectral": spectral} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "openapi.json")
			check := func(text string) []finding {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				return linter(t, tools, file)
			}
			warnings := 0
			for _, f := range check(string(document)) {
				t.Logf("%s: %s at %s", f.rule, f.message, f.place)
				if warnings++; f.isError || warnings > maxWarnings {
					t.Errorf("%s: %s at %s", f.rule, f.message, f.place)
				}
			}
			// An operation that uses the ID of another one is found.
			if broken := check(strings.Replace(string(document), `"operationId": "get-me"`, `"operationId": "get-pool"`, 1)); len(broken) <= warnings || !broken[0].isError {
				t.Errorf("a repeated operation ID is not found: %v", broken)
			}
		})
	}
}
