package config

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"weir/pool/agent"
	"weir/pool/authority"
)

// agentsSettings are the settings of a server for agents.
var agentsSettings = []setting{
	{name: "agents-listen", kind: "HOST:PORT", defaultText: "127.0.0.1:8443",
		help: "address to listen on for agents; empty to accept none",
		set:  into(func(c *Config) *string { return &c.AgentsListen }, optional(parseListen))},
	{name: "agents-url", kind: "URL",
		help: "URL of the listener for agents as agents reach it, such as https://weir.example.org:8443",
		set:  into(func(c *Config) *string { return &c.AgentsURL }, optional(parseAgentsURL))},
	{name: "workspaces-listen", kind: "HOST:PORT",
		help: "address to listen on for programs in the workspaces of a cluster, such as :8081; they start runs there (default none: there is no kernel Python (GPU))",
		set:  into(func(c *Config) *string { return &c.WorkspacesListen }, optional(parseListen))},
	{name: "workspaces-url", kind: "URL",
		help: "URL of the listener for workspaces as pods reach it, such as http://weir-workspaces.weir.svc:8081; workspaces get the address of its host",
		set:  into(func(c *Config) *string { return &c.WorkspacesURL }, optional(parseWorkspacesURL))},
	{name: "authority-file", kind: "FILE",
		help: "key and certificate of the certificate authority for agents, created if missing (default DATA-DIR/authority.pem)",
		set:  into(func(c *Config) *string { return &c.AuthorityFile }, parseDir)},
	{name: "agent-certificate-lifetime", kind: "DURATION", defaultText: "24h",
		help: "lifetime of agent certificates; an agent that is offline for longer than two thirds of it may have to enroll again",
		set:  into(func(c *Config) *time.Duration { return &c.AgentCertificateLifetime }, durationFrom(time.Minute))},
	{name: "agent-heartbeat", kind: "DURATION", defaultText: "2s",
		help: "interval of agent heartbeats, at most 10s",
		set:  into(func(c *Config) *time.Duration { return &c.AgentHeartbeat }, durationWithin(100*time.Millisecond, 10*time.Second))},
	{name: "kube-agents", kind: "NAMESPACE/SERVICEACCOUNT",
		help: "service account whose pods may enroll, each as the agent of its node (default none: agents need authorization codes)",
		set:  into(func(c *Config) *string { return &c.KubeAgents }, optional(parseAccount))},
	{name: "kube-agents-owner", kind: "EMAIL",
		help: "email of the owner of nodes that enroll for the first time (default the first platform administrator)",
		set:  into(func(c *Config) *string { return &c.KubeAgentsOwner }, parseEmail)},
	{name: "machine-id-file", kind: "FILE",
		help: "file that identifies this machine (default /etc/machine-id, or the DMI product UUID)",
		set:  into(func(c *Config) *string { return &c.MachineIDFile }, parseDir)},
}

// agentSettings are the settings of an agent only.
var agentSettings = []setting{
	{name: "server", kind: "URL", notServe: true,
		help: "URL of the portal, or of its listener for agents",
		set:  into(func(c *Config) *string { return &c.Server }, optional(agent.ParseServer))},
	{name: "code", kind: "CODE", notServe: true, secret: true,
		help: "authorization code to enroll with",
		set:  into(func(c *Config) *string { return &c.Code }, optional(parseCode))},
	{name: "cluster-token-file", kind: "FILE", notServe: true,
		help: "token of the agent's service account, with the audience weir, to enroll with instead of a code",
		set:  into(func(c *Config) *string { return &c.ClusterTokenFile }, parseDir)},
	{name: "authority-certificate", kind: "FILE", notServe: true,
		help: "certificate of the portal's certificate authority (see “weir admin authority”); required with cluster-token-file",
		set:  into(func(c *Config) *string { return &c.AuthorityCertificate }, parseDir)},
	{name: "state-dir", kind: "DIR", notServe: true,
		help: "directory for the agent's key (default DATA-DIR/agent)",
		set:  into(func(c *Config) *string { return &c.StateDir }, parseDir)},
	{name: "name", kind: "NAME", notServe: true,
		help: "name of this machine (default the host name)",
		set:  into(func(c *Config) *string { return &c.Name }, anyText)},
}

// parseAccount parses NAMESPACE/NAME of a service account.
func parseAccount(text string) (string, error) {
	namespace, name, _ := strings.Cut(text, "/")
	if !domainPattern.MatchString(namespace) || strings.Contains(namespace, ".") || !domainPattern.MatchString(name) {
		return "", fmt.Errorf("%q must be the namespace and the name of a service account, such as weir/weir-agent", text)
	}
	return text, nil
}

func parseEmail(text string) (string, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	if text != "" && !strings.Contains(text, "@") {
		return "", fmt.Errorf("%q must be the email address of an account", text)
	}
	return text, nil
}

// checkClusterAgents checks settings against each other.
func (c *Config) checkClusterAgents() (p problems) {
	p.require(c.KubeAgents == "" || c.Runtime == "kube", "kube-agents: requires “runtime: kube”")
	p.require(c.KubeAgents == "" || c.AgentsListen != "", "kube-agents: requires agents-listen")
	p.require(c.KubeAgentsOwner == "" || c.KubeAgents != "", "kube-agents-owner: requires kube-agents")
	p.require(c.ClusterTokenFile == "" || c.Code == "", "cluster-token-file: cannot be used together with code")
	p.require(c.ClusterTokenFile == "" || c.AuthorityCertificate != "", "cluster-token-file: requires authority-certificate")
	p.require(c.AuthorityCertificate == "" || c.ClusterTokenFile != "",
		"authority-certificate: requires cluster-token-file; a code needs none")
	p.require(c.WorkspacesListen == "" || c.Runtime == "kube", "workspaces-listen: requires “runtime: kube”; on one machine, each workspace has a socket")
	p.require((c.WorkspacesListen == "") == (c.WorkspacesURL == ""), "workspaces-listen and workspaces-url: require each other")
	return p
}

func parseAgentsURL(text string) (string, error) {
	if _, err := agent.ParseServer(text); err != nil || !strings.HasPrefix(text, "https://") {
		return "", fmt.Errorf("%q must be https://host:port without a path", text)
	}
	return text, nil
}

// parseWorkspacesURL parses the URL of a listener without TLS, as that of notebooks is.
func parseWorkspacesURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" || u.Port() == "" || u.Host != strings.TrimPrefix(text, "http://") {
		return "", fmt.Errorf("%q must be http://host:port without a path", text)
	}
	return text, nil
}

// parseCode does not repeat the code in its error.
func parseCode(text string) (string, error) {
	_, err := authority.ParseCode(text)
	return text, err
}
