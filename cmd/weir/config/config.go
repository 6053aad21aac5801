package config

import (
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"weir/policies"
	"weir/policies/notifications"
	"weir/workspaces/kube"
)

// Config is every setting of the program, checked and parsed.
type Config struct {
	Listen          string
	ExternalURL     string // without a trailing slash; empty: as the browser says
	TrustedProxies  []netip.Prefix
	AppsDomain      string
	DataDir         string // absolute
	DatabaseURL     string // secret; empty: SQLite in DataDir
	SimulateGPUs    []SimulatedGPUs
	SandboxUID      int
	PlacementPolicy string
	Runtime         string // local or kube
	SharedDir       string
	Kube            kube.Config // as far as settings say
	SessionLifetime time.Duration
	OIDC            OIDC
	Notifications   Notifications
	ShutdownGrace   time.Duration
	LogLevel        slog.Level
	LogFormat       string

	AgentsListen             string // empty: agents cannot join
	AgentsURL                string // empty: follows from the listener
	AuthorityFile            string // absolute
	AgentCertificateLifetime time.Duration
	AgentHeartbeat           time.Duration
	MachineIDFile            string // absolute; empty: where Linux keeps it
	KubeAgents               string // namespace/name of the service account of the nodes' agents; empty: they need codes
	KubeAgentsOwner          string // address of the account whose GPUs nodes have; empty: the first administrator

	// Of an agent alone.
	Server   string // empty: the one of its enrolment
	Code     string // secret
	StateDir string // absolute
	Name     string // empty: the host's name

	ClusterTokenFile     string // absolute; the cluster vouches by it for the agent's node
	AuthorityCertificate string // absolute file; by it the agent knows the portal then

	shown []slog.Attr // each setting as it was written, for LogValue
}

// SimulatedGPUs asks for Count pretended GPUs of one Model.
type SimulatedGPUs struct {
	Model string
	Count int
}

// OIDC is how people sign in by a provider.
type OIDC struct {
	Issuer       string // empty: by password alone
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

// Notifications is how people and programs are told of things.
type Notifications struct {
	Mailer         *notifications.Mailer // nil: no e-mail
	PasswordFile   string                // absolute
	From           string
	WebhookPrivate bool
}

// TLS tells whether browsers reach the portal over TLS, so that its cookies
// may be Secure.
func (c Config) TLS() bool { return strings.HasPrefix(c.ExternalURL, "https://") }

// SQLiteFile is where the database is when no DatabaseURL is given.
func (c Config) SQLiteFile() string { return filepath.Join(c.DataDir, "weir.db") }

// MPSDir is where the MPS daemons of this machine's GPUs are reached.
func (c Config) MPSDir() string { return filepath.Join(c.DataDir, "mps") }

// LogValue shows the settings in a log, without secrets.
func (c Config) LogValue() slog.Value { return slog.GroupValue(c.shown...) }

// String keeps secrets out of careless prints of a Config.
func (c Config) String() string { return c.LogValue().String() }

// completePaths settles the files that lie in the data directory unless they
// are named.
func (c *Config) completePaths() {
	for path, name := range map[*string]string{&c.SharedDir: "shared", &c.AuthorityFile: "authority.pem", &c.StateDir: "agent"} {
		if *path == "" {
			*path = filepath.Join(c.DataDir, name)
		}
	}
}
