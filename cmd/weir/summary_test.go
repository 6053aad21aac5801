package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestSummaryFitsAScreen(t *testing.T) {
	s := summary{Version: "1.2 abc", Address: "http://localhost:8080", Database: "SQLite, /d/weir.db", DataDir: "/d", Runtime: "processes on this machine",
		Pool: []string{"8 × H100, simulated", "1 × A10"}, Settings: map[string]string{"listen": ":80", "data-dir": "/d"},
		NotEnforced: []string{"memory: no permission to create a cgroup"}, SetupLink: "http://localhost:8080/setup?token=t"}
	var out bytes.Buffer
	if err := s.writeText(&out); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"Weir           1.2 abc", "Agents         none can join", "Pool           8 × H100, simulated; 1 × A10",
		"Settings       data-dir=/d listen=:80", "Not enforced   memory: no permission to create a cgroup", "  http://localhost:8080/setup?token=t"} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("%q is not in\n%s", line, out.String())
		}
	}
	if n := strings.Count(out.String(), "\n"); n > 20 {
		t.Errorf("%d lines", n)
	}
	s.SetupLink, s.NotEnforced, s.Settings = "", nil, nil
	out.Reset()
	if err := s.writeText(&out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "Not enforced") || strings.Contains(text, "administrator") || !strings.Contains(text, "defaults\n") {
		t.Errorf("got\n%s", text)
	}
}
