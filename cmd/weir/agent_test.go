package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/cmd/weir/cli"
	"weir/cmd/weir/config"
)

func TestAgentShowsItsGPUCode(t *testing.T) {
	dir := t.TempDir()
	id := filepath.Join(dir, "machine-id")
	if err := os.WriteFile(id, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(args ...string) (int, string, string) {
		var out, errOut bytes.Buffer
		code := weir(append([]string{"agent", "--data-dir", filepath.Join(dir, "data"), "--machine-id-file", id}, args...), &out, &errOut)
		return code, out.String(), errOut.String()
	}
	code, text, _ := ask("--simulate-gpus", "h100:2,a100:1", "--name", "rack7")
	_, raw, _ := ask("--simulate-gpus", "h100:2,a100:1", "--name", "rack7", "--output", "json")
	var shown gpuCode
	if err := json.Unmarshal([]byte(raw), &shown); err != nil || code != cli.ExitOK || len(shown.Devices) != 3 || shown.Machine != "rack7" {
		t.Fatalf("exit code %d, %v: %s", code, err, raw)
	}
	for _, want := range []string{shown.GPUCode, "rack7", "2 × NVIDIA H100", "1 × Mock NVIDIA A100", "weir admin authorize --gpu-code " + shown.GPUCode, "--code CODE"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if _, other, _ := ask("--simulate-gpus", "h100:2"); strings.Contains(other, shown.GPUCode) {
		t.Error("other GPUs have the same code")
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); err == nil {
		t.Error("showing the code has left something behind")
	}
	good := strings.Repeat("0", 52)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"--simulate-gpus h100:1 --code " + good, cli.ExitUsage, "--server"},
		{"--simulate-gpus h100:1 --code 123", cli.ExitUsage, "52 letters and digits"},
		{"--simulate-gpus h100:1 --server ftp://x", cli.ExitUsage, "--server: "},
		{"--machine-id-file /does/not/exist", cli.ExitError, "--machine-id-file"},
		{"--listen :1", cli.ExitUsage, "unknown flag"},
	} {
		if code, _, says := ask(strings.Fields(c.args)...); code != c.code || !strings.Contains(says, c.says) {
			t.Errorf("weir agent %s: exit code %d; says %s", c.args, code, says)
		}
	}
}

func TestMachineIdentity(t *testing.T) {
	file := filepath.Join(t.TempDir(), "id")
	for text, ok := range map[string]bool{"": false, "\n": false, "short\n": false, " 0123456789abcdef \n": true} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := machineIdentity(file); (err == nil) != ok || ok && got != strings.TrimSpace(text) {
			t.Errorf("%q gives %q, %v", text, got, err)
		}
	}
}

// at is a listener as far as its address goes.
type at struct {
	net.Listener
	address net.TCPAddr
}

func (l at) Addr() net.Addr { return &l.address }

func TestAgentsURL(t *testing.T) {
	for _, c := range []struct {
		ip, host, set, want string
	}{
		{"127.0.0.1", "weir.example.org", "", "https://127.0.0.1:8443"},
		{"0.0.0.0", "weir.example.org", "", "https://weir.example.org:8443"},
		{"::", "[2001:db8::1]", "", "https://[2001:db8::1]:8443"},
		{"::", "2001:db8::1", "", "https://[2001:db8::1]:8443"},
		{"192.0.2.1", "weir.example.org", "", "https://192.0.2.1:8443"},
		{"0.0.0.0", "weir.example.org", "https://agents.example.org", "https://agents.example.org"},
	} {
		side := agentEndpoint{listener: at{address: net.TCPAddr{IP: net.ParseIP(c.ip), Port: 8443}}}
		if got := side.url(config.Config{AgentsURL: c.set})(c.host); got != c.want {
			t.Errorf("at %s, for %s: %s, want %s", c.ip, c.host, got, c.want)
		}
	}
	if (agentEndpoint{}).url(config.Config{}) != nil {
		t.Error("there is an address without a listener")
	}
}
