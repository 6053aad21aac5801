package config

import (
	"strings"
	"testing"
)

func TestClusterAgentsSettings(t *testing.T) {
	kubes := []string{"--data-dir", "/d", "--runtime", "kube"}
	c, err := load(t, map[string]string{"WEIR_KUBE_AGENTS": "weir/weir-agent"}, append(kubes, "--kube-agents-owner", " Ada@Example.org"))
	if err != nil || c.KubeAgents != "weir/weir-agent" || c.KubeAgentsOwner != "ada@example.org" {
		t.Errorf("%q, %q, %v", c.KubeAgents, c.KubeAgentsOwner, err)
	}
	for _, text := range []string{"weir", "/", "weir/", "/agent", "a.b/agent", "weir/a/b", "Weir/agent", "weir/-"} {
		if _, err := load(t, nil, append(kubes, "--kube-agents", text)); err == nil || !strings.Contains(err.Error(), "--kube-agents: ") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, c := range []struct {
		args, says string
		only       []string
	}{
		{"--kube-agents weir/agent", "runtime: kube", nil},
		{"--runtime kube --kube-agents weir/agent --agents-listen=", "agents-listen", nil},
		{"--runtime kube --kube-agents-owner ada@example.org", "requires kube-agents", nil},
		{"--runtime kube --kube-agents weir/agent --kube-agents-owner ada", "email address of an account", nil},
		{"--workspaces-listen :8081 --workspaces-url http://weir:8081", "workspaces-listen: requires “runtime: kube”", nil},
		{"--runtime kube --workspaces-listen :8081", "require each other", nil},
		{"--runtime kube --workspaces-url http://weir:8081", "require each other", nil},
		{"--runtime kube --workspaces-listen :8081 --workspaces-url https://weir:8081", "must be http://host:port", nil},
		{"--runtime kube --workspaces-listen :8081 --workspaces-url http://weir", "must be http://host:port", nil},
		{"--runtime kube --workspaces-listen :8081 --workspaces-url http://weir:8081/api", "must be http://host:port", nil},
		{"--runtime kube --workspaces-listen :8081 --workspaces-url http://me@weir:8081", "must be http://host:port", nil},
		{"--cluster-token-file t", "authority-certificate", ForAgent},
		{"--authority-certificate c", "cluster-token-file", ForAgent},
		{"--cluster-token-file t --authority-certificate c --code " + strings.Repeat("0", 52), "together with code", ForAgent},
	} {
		if _, err := load(t, nil, strings.Fields(c.args), c.only...); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.args, err)
		}
	}
	if c, err := load(t, nil, []string{"--cluster-token-file", "/t", "--authority-certificate", "/c"}, ForAgent...); err != nil || c.ClusterTokenFile != "/t" {
		t.Errorf("%q, %v", c.ClusterTokenFile, err)
	}
}
