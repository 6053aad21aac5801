package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMailSettings(t *testing.T) {
	password := filepath.Join(t.TempDir(), "password")
	empty := filepath.Join(t.TempDir(), "empty")
	for file, text := range map[string]string{password: "hunter2\n", empty: "\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ args, problem string }{
		{"", ""},
		{"--smtp-url smtp://mail.example.org --smtp-from weir@example.org", ""},
		{"--smtp-url smtps://weir@mail.example.org --smtp-from weir@example.org --smtp-password-file " + password, ""},
		{"--smtp-url smtp://mail.example.org", "smtp-from: is required"},
		{"--smtp-from weir@example.org", "smtp-url: is required"},
		{"--smtp-url smtp://mail.example.org --smtp-from weir@example.org --smtp-password-file " + password, "smtp-url: must include a user"},
		{"--smtp-url smtp://weir@mail.example.org --smtp-from weir@example.org --smtp-password-file " + empty, "smtp-password-file: the file is empty"},
		{"--smtp-url smtp://weir@mail.example.org --smtp-from weir@example.org --smtp-password-file /does/not/exist", "smtp-password-file: open"},
		{"--smtp-url smtp://weir:hunter2@mail.example.org --smtp-from weir@example.org", "--smtp-url: must not hold the password"},
		{"--smtp-url mail.example.org --smtp-from weir", "--smtp-from: "},
		{"--webhook-allow-private yes", "--webhook-allow-private: "},
	} {
		cfg, err := load(t, nil, strings.Fields(c.args))
		switch {
		case c.problem == "" && err != nil, c.problem != "" && (err == nil || !strings.Contains(err.Error(), "\n  "+c.problem)):
			t.Errorf("%s: %v, want %q", c.args, err, c.problem)
		case err != nil && strings.Contains(err.Error(), "hunter2"):
			t.Errorf("the error shows a password: %v", err)
		case strings.Contains(cfg.String(), "hunter2"):
			t.Errorf("the configuration shows a password: %s", cfg)
		}
	}
	cfg, err := load(t, nil, strings.Fields("--smtp-url smtp://weir@mail.example.org --smtp-from Weir<weir@example.org> --smtp-password-file "+password))
	if m := cfg.Notifications.Mailer; err != nil || m.Host != "mail.example.org" || m.Port != "587" || m.TLS || m.User != "weir" || m.Password != "hunter2" ||
		m.From.Name != "Weir" || m.From.Address != "weir@example.org" {
		t.Errorf("%+v, %v", m, err)
	}
}
