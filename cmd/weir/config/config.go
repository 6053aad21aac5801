package config

import (
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"weir/models"
	"weir/policies"
	"weir/policies/notifications"
	"weir/pool/broker"
	"weir/storage/files"
	"weir/storage/nfs"
	"weir/storage/rules"
	"weir/workspaces/kube"
)

// Config contains all settings of the program, checked and parsed.
type Config struct {
	Listen          string
	ExternalURL     string // without a trailing slash; empty: from the request
	TrustedProxies  []netip.Prefix
	AppsDomain      string
	DataDir         string   // absolute
	Hosts           []string // names of the portal beside that of ExternalURL
	SplitPresets    string   // file; empty: those of the program
	MetricsFile     string   // absolute
	MetricsToken    string   // read from the file; empty: no metrics
	DatabaseURL     string   // secret; empty: SQLite in DataDir
	SimulateGPUs    []SimulatedGPUs
	SandboxUID      int
	IDRange         rules.IDRange // empty: members have no IDs of their own
	PlacementPolicy string
	Runtime         string                  // local or kube
	PerGPU          models.Resources        // of quotas that are left open
	Launch          models.LaunchParameters // the platform's defaults
	Reservations    broker.Rules
	SharedDir       string
	Files           files.Settings
	Kube            kube.Config // the fields that are settings
	NFS             nfs.Config  // of “weir nfs”
	SessionLifetime time.Duration

	InvitationLifetime   time.Duration
	PasswordLinkLifetime time.Duration

	OIDC          OIDC
	Notifications Notifications
	ShutdownGrace time.Duration

	DeploymentMoveAfter time.Duration
	LogLevel            slog.Level
	LogFormat           string

	AgentsListen             string // empty: agents cannot join
	AgentsURL                string // empty: follows from the listener
	WorkspacesListen         string // empty: programs in pods do not reach this server
	WorkspacesURL            string
	AuthorityFile            string // absolute
	AgentCertificateLifetime time.Duration
	AgentHeartbeat           time.Duration
	MachineIDFile            string // absolute; empty: the files of Linux
	KubeAgents               string // namespace/name of the service account of the nodes' agents; empty: they need codes
	KubeAgentsOwner          string // email of the owner of the nodes; empty: the first administrator

	// Of an agent only.
	Server   string // empty: the one of its enrollment
	Code     string // secret
	StateDir string // absolute
	Name     string // empty: the host's name

	ClusterTokenFile     string // absolute; with a token that proves the agent's node
	AuthorityCertificate string // absolute; to authenticate the portal

	File    string            // of --config; empty: none
	changed map[string]string // see Changed
}

// SimulatedGPUs are Count simulated GPUs of one Model.
type SimulatedGPUs struct {
	Model string
	Count int
}

// OIDC configures sign-in with an identity provider.
type OIDC struct {
	Issuer       string // empty: only passwords
	ClientID     string
	ClientSecret string // read from a file; empty: the portal is a public client
	SecretFile   string // absolute
	Name         string // empty: the issuer's host
	Domains      []string
	Link         bool
	GroupsClaim  string
	Groups       []policies.GroupRule
	SessionMax   time.Duration
}

// Rules are the rules of the provider; nil without one.
func (o OIDC) Rules() *policies.ProviderRules {
	if o.Issuer == "" {
		return nil
	}
	return &policies.ProviderRules{Name: o.Name, Domains: o.Domains, Link: o.Link, Groups: o.Groups}
}

// Notifications configures email and webhooks.
type Notifications struct {
	Mailer               *notifications.Mailer // nil: no e-mail
	PasswordFile         string                // absolute
	From                 string
	AllowPrivateWebhooks bool
}

// TLS reports whether browsers reach the portal over TLS, so that its cookies
// can be Secure.
func (c Config) TLS() bool { return strings.HasPrefix(c.ExternalURL, "https://") }

// SQLiteFile is the path of the database without a DatabaseURL.
func (c Config) SQLiteFile() string { return filepath.Join(c.DataDir, "weir.db") }

// MPSDir is the directory of the sockets of this machine's MPS daemons.
func (c Config) MPSDir() string { return filepath.Join(c.DataDir, "mps") }

// Changed returns the texts of the settings that differ from their defaults, without
// secrets.
func (c Config) Changed() map[string]string { return c.changed }

// LogValue returns what Changed does.
func (c Config) LogValue() slog.Value { return slog.AnyValue(c.changed) }

// String returns what Changed does.
func (c Config) String() string { return fmt.Sprint(c.changed) }

// completePaths sets the paths whose default is in the data directory.
func (c *Config) completePaths() {
	for path, name := range map[*string]string{&c.SharedDir: "shared", &c.AuthorityFile: "authority.pem", &c.StateDir: "agent"} {
		if *path == "" {
			*path = filepath.Join(c.DataDir, name)
		}
	}
	c.NFS.Root, c.NFS.Dir = c.SharedDir, filepath.Join(c.DataDir, "nfs")
}
