package config

import (
	"fmt"
	"strings"
	"time"

	"weir/pool/agent"
	"weir/pool/authority"
)

// agentsSettings are what a server has for agents.
var agentsSettings = []setting{
	{name: "agents-listen", kind: "HOST:PORT", def: "127.0.0.1:8443",
		help: "address for the agents of other machines; empty: none can join",
		set:  into(func(c *Config) *string { return &c.AgentsListen }, optional(parseListen))},
	{name: "agents-url", kind: "URL",
		help: "the agents' address as agents see it, such as https://weir.example.org:8443",
		set:  into(func(c *Config) *string { return &c.AgentsURL }, optional(parseAgentsURL))},
	{name: "authority-file", kind: "FILE",
		help: "key and certificate of the authority for agents, made when absent (default DATA-DIR/authority.pem)",
		set:  into(func(c *Config) *string { return &c.AuthorityFile }, parseDir)},
	{name: "agent-certificate-lifetime", kind: "DURATION", def: "24h",
		help: "how long an agent's certificate is good; one that is silent for longer has to enrol again",
		set:  into(func(c *Config) *time.Duration { return &c.AgentCertificateLifetime }, durationFrom(time.Minute))},
	{name: "agent-beat", kind: "DURATION", def: "2s",
		help: "how often agents report, at most 10s",
		set:  into(func(c *Config) *time.Duration { return &c.AgentBeat }, durationWithin(100*time.Millisecond, 10*time.Second))},
	{name: "kube-agents", kind: "NAMESPACE/SERVICEACCOUNT",
		help: "let agents in that run as this service account in the cluster, each as its node; empty: they need authorization codes",
		set:  into(func(c *Config) *string { return &c.KubeAgents }, optional(parseAccount))},
	{name: "kube-agents-owner", kind: "EMAIL",
		help: "account whose GPUs such a node has when it comes for the first time (default the platform administrator who was there first)",
		set:  into(func(c *Config) *string { return &c.KubeAgentsOwner }, parseEmail)},
	{name: "machine-id-file", kind: "FILE",
		help: "file that tells this machine from all others (default /etc/machine-id, or the DMI product's UUID)",
		set:  into(func(c *Config) *string { return &c.MachineIDFile }, parseDir)},
}

// agentSettings are of an agent alone.
var agentSettings = []setting{
	{name: "server", kind: "URL", agent: true,
		help: "address of the portal, or of its listener for agents",
		set:  into(func(c *Config) *string { return &c.Server }, optional(agent.ParseServer))},
	{name: "code", kind: "CODE", agent: true, secret: true,
		help: "authorization code to enrol with",
		set:  into(func(c *Config) *string { return &c.Code }, parseCode)},
	{name: "cluster-token-file", kind: "FILE", agent: true,
		help: "token of the agent's service account, with the audience weir: enrol by the cluster's word, without a code",
		set:  into(func(c *Config) *string { return &c.ClusterTokenFile }, parseDir)},
	{name: "authority-certificate", kind: "FILE", agent: true,
		help: "certificate of the portal's authority (see “weir admin authority”); the token is shown to nobody else",
		set:  into(func(c *Config) *string { return &c.AuthorityCertificate }, parseDir)},
	{name: "state-dir", kind: "DIR", agent: true,
		help: "where the agent keeps its key (default DATA-DIR/agent)",
		set:  into(func(c *Config) *string { return &c.StateDir }, parseDir)},
	{name: "name", kind: "NAME", agent: true,
		help: "what this machine is called (default the host's name)",
		set:  into(func(c *Config) *string { return &c.Name }, anyText)},
}

// parseAccount reads namespace/name of a service account.
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
		return "", fmt.Errorf("%q must be the address of an account", text)
	}
	return text, nil
}

// checkClusterAgents says what does not go together.
func (c *Config) checkClusterAgents() (problems []string) {
	need := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	need(c.KubeAgents == "" || c.Runtime == "kube", "kube-agents: there is a cluster only with “runtime: kube”")
	need(c.KubeAgents == "" || c.AgentsListen != "", "kube-agents: agents cannot come without agents-listen")
	need(c.KubeAgentsOwner == "" || c.KubeAgents != "", "kube-agents-owner: no node comes by itself without kube-agents")
	need(c.ClusterTokenFile == "" || c.Code == "", "cluster-token-file: give either this or a code")
	need(c.ClusterTokenFile == "" || c.AuthorityCertificate != "", "cluster-token-file: say with authority-certificate by what the agent knows the portal")
	need(c.AuthorityCertificate == "" || c.ClusterTokenFile != "", "authority-certificate: it is for agents with a cluster-token-file; a code holds what it is needed for")
	return problems
}

func parseAgentsURL(text string) (string, error) {
	if _, err := agent.ParseServer(text); err != nil || !strings.HasPrefix(text, "https://") {
		return "", fmt.Errorf("%q must be https://host:port without a path", text)
	}
	return text, nil
}

// parseCode does not repeat the code.
func parseCode(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	_, err := authority.ParseCode(text)
	return text, err
}
