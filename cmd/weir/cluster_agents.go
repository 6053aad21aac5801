package main

import (
	"context"
	"fmt"
	"strings"

	"weir/pool/providers"
	"weir/workspaces/kube"
)

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

// voucher lets the cluster vouch for the pods of one service account.
type voucher struct {
	runtime *kube.Runtime
	account string
}

func (v voucher) NodeOf(ctx context.Context, token string) (string, error) {
	return v.runtime.NodeOf(ctx, v.account, token)
}

// vouching is who vouches for nodes; nil where nobody was told to.
func (p *portal) vouching() providers.Cluster {
	if p.cfg.KubeAgents == "" {
		return nil
	}
	return voucher{p.cluster, p.cfg.KubeAgents}
}
