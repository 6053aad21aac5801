package main

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"weir/pool/placement"
	"weir/workspaces/kube"

	"weir/pool/agent"
)

// Config is every setting of the program, checked and parsed.
type Config struct {
	ConfigFile      string
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
	OIDC            oidcConfig
	Notices         noticesConfig
	ShutdownGrace   time.Duration
	LogLevel        slog.Level
	LogFormat       string

	AgentsListen             string // empty: agents cannot join
	AgentsURL                string // empty: follows from the listener
	AuthorityFile            string // absolute
	AgentCertificateLifetime time.Duration
	AgentBeat                time.Duration
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

	texts map[string]string // each setting as it was written, for LogValue
}

// SimulatedGPUs asks for Count pretended GPUs of one Model.
type SimulatedGPUs struct {
	Model string
	Count int
}

// TLS tells whether browsers reach the portal over TLS, so that its cookies
// may be Secure.
func (c Config) TLS() bool { return strings.HasPrefix(c.ExternalURL, "https://") }

// SQLiteFile is where the database is when no DatabaseURL is given.
func (c Config) SQLiteFile() string { return filepath.Join(c.DataDir, "weir.db") }

// mpsDir is where the MPS daemons of this machine's GPUs are reached.
func (c Config) mpsDir() string { return filepath.Join(c.DataDir, "mps") }

// LogValue shows the settings in a log; of a secret only whether it is set.
func (c Config) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, o := range options {
		text := c.texts[o.name]
		if o.secret && text != "" {
			text = "(set)"
		}
		attrs = append(attrs, slog.String(o.name, text))
	}
	return slog.GroupValue(attrs...)
}

// String keeps secrets out of careless prints of a Config.
func (c Config) String() string { return c.LogValue().String() }

// option is one setting. Its name is the flag and the YAML key; the
// environment variable follows from it.
type option struct {
	name   string
	kind   string // what --help calls its value
	def    string // as a user would write it
	help   string
	secret bool // never shown; its set must not repeat the value in an error
	agent  bool // of “weir agent” alone
	set    func(*Config, string) error
}

func (o option) env() string {
	return "WEIR_" + strings.ToUpper(strings.ReplaceAll(o.name, "-", "_"))
}

var options = slices.Concat([]option{
	{name: "listen", kind: "HOST:PORT", def: "127.0.0.1:8080",
		help: "address to serve on",
		set:  into(func(c *Config) *string { return &c.Listen }, parseListen)},
	{name: "external-url", kind: "URL",
		help: "the portal's address as browsers see it, such as https://weir.example.org",
		set:  into(func(c *Config) *string { return &c.ExternalURL }, parseOrigin)},
	{name: "trusted-proxies", kind: "NETWORK,...",
		help: "reverse proxies whose X-Forwarded-For is believed, by address or network; empty: none",
		set:  into(func(c *Config) *[]netip.Prefix { return &c.TrustedProxies }, parseProxies)},
	{name: "apps-domain", kind: "DOMAIN", def: "localhost",
		help: "domain below which each workspace has its own name",
		set:  into(func(c *Config) *string { return &c.AppsDomain }, parseDomain)},
	{name: "data-dir", kind: "DIR",
		help: "where data is kept (default $XDG_DATA_HOME/weir, as root /var/lib/weir)",
		set:  into(func(c *Config) *string { return &c.DataDir }, parseDir)},
	{name: "database-url", kind: "URL", secret: true,
		help: "postgres:// address of the database; without it SQLite in the data directory",
		set:  into(func(c *Config) *string { return &c.DatabaseURL }, parsePostgres)},
	{name: "simulate-gpus", kind: "MODEL:COUNT,...",
		help: "pretend to have these GPUs, such as h100:8 (models " + strings.Join(gpuModels, ", ") + ")",
		set:  into(func(c *Config) *[]SimulatedGPUs { return &c.SimulateGPUs }, parseGPUs)},
	{name: "sandbox-uid", kind: "UID", def: "62000",
		help: "user that workspaces run as when Weir runs as root",
		set:  into(func(c *Config) *int { return &c.SandboxUID }, parseUID)},
	{name: "session-lifetime", kind: "DURATION", def: "12h",
		help: "how long a sign-in lasts",
		set:  into(func(c *Config) *time.Duration { return &c.SessionLifetime }, durationFrom(time.Minute))},
	{name: "shutdown-grace", kind: "DURATION", def: "10s",
		help: "how long open requests may take to finish at shutdown",
		set:  into(func(c *Config) *time.Duration { return &c.ShutdownGrace }, durationFrom(0))},
	{name: "placement-policy", kind: "NAME", def: "weir",
		help: "how GPUs are chosen: " + strings.Join(placement.Policies(), ", "),
		set:  into(func(c *Config) *string { return &c.PlacementPolicy }, oneOf(placement.Policies()...))},
	{name: "runtime", kind: "NAME", def: "local",
		help: "where workspaces run: local, on this machine, or kube, in a cluster",
		set:  into(func(c *Config) *string { return &c.Runtime }, oneOf("local", "kube"))},
	{name: "shared-dir", kind: "DIR",
		help: "the shared directories as this process sees them (default DATA-DIR/shared)",
		set:  into(func(c *Config) *string { return &c.SharedDir }, parseDir)},
	{name: "kubeconfig", kind: "FILE",
		help: "how to reach the cluster; empty: as the pod that Weir runs in is told",
		set:  into(func(c *Config) *string { return &c.Kube.Kubeconfig }, anyText)},
	{name: "kube-instance", kind: "NAME", def: "weir",
		help: "what tells this pool's objects from those of another in the same cluster",
		set:  into(func(c *Config) *string { return &c.Kube.Instance }, parseLabel)},
	{name: "kube-prefix", kind: "TEXT", def: "weir-p-",
		help: "how the names of the projects' namespaces begin",
		set:  into(func(c *Config) *string { return &c.Kube.Prefix }, parsePrefix)},
	{name: "kube-storage", kind: "NFS|DIR",
		help: "the shared directories as the cluster mounts them: nfs://server/path, or a directory that every node has",
		set:  into(func(c *Config) *kube.Storage { return &c.Kube.Storage }, parseStorage)},
	{name: "kube-mount-options", kind: "OPTION,...",
		help: "how the cluster mounts NFS (default nfsvers=4.2,hard,noatime)",
		set:  into(func(c *Config) *[]string { return &c.Kube.Storage.MountOptions }, parseList)},
	{name: "kube-portal", kind: "CIDR,...|NAMESPACE",
		help: "who alone may reach notebooks: addresses, or the namespace in which the portal's pods run",
		set:  into(func(c *Config) *kube.Peer { return &c.Kube.Portal }, parsePeer)},
	{name: "kube-egress", kind: "CIDR,...",
		help: "networks to which notebooks may connect, beside names (DNS)",
		set:  into(func(c *Config) *[]kube.Egress { return &c.Kube.Egress }, parseEgress)},
	{name: "kube-image", kind: "IMAGE",
		help: "image of environments that name none",
		set:  into(func(c *Config) *string { return &c.Kube.Image }, anyText)},
	{name: "kube-pull-policy", kind: "NAME",
		help: "when nodes fetch images: Always, IfNotPresent or Never (default the cluster's own rule)",
		set:  into(func(c *Config) *corev1.PullPolicy { return &c.Kube.PullPolicy }, parsePullPolicy)},
	{name: "kube-scratch", kind: "SIZE",
		help: "what a workspace may write outside the shared directories, such as 20Gi (default as much as the node has)",
		set:  into(func(c *Config) *int64 { return &c.Kube.Scratch }, parseScratch)},
	{name: "kube-cpu-share", kind: "PERCENT", def: "25",
		help: "how much of its CPU limit a workspace reserves on its node",
		set:  into(func(c *Config) *int64 { return &c.Kube.CPUShare }, parsePercent)},
	{name: "kube-grace", kind: "DURATION", def: "5s",
		help: "how long a notebook may take to end before it is killed",
		set:  into(func(c *Config) *time.Duration { return &c.Kube.Grace }, durationWithin(time.Second, 10*time.Minute))},
	{name: "kube-tolerations", kind: "KEY[=VALUE][:EFFECT],...",
		help: "taints of nodes that workspaces tolerate, such as nvidia.com/gpu:NoSchedule",
		set:  into(func(c *Config) *[]corev1.Toleration { return &c.Kube.Tolerations }, parseTolerations)},
	{name: "kube-gpu-backend", kind: "NAME", def: kube.BackendWeir,
		help: "who gives pods their GPUs: weir, nvidia (whole GPUs, by NVIDIA's device plugin) or hami",
		set:  into(func(c *Config) *string { return &c.Kube.GPUBackend }, oneOf(kube.BackendWeir, kube.BackendNVIDIA, kube.BackendHAMi))},
	{name: "kube-runtime-class", kind: "NAME",
		help: "runtime class of pods that see GPUs, such as nvidia",
		set:  into(func(c *Config) *string { return &c.Kube.RuntimeClass }, anyText)},
	{name: "kube-mps-dir", kind: "DIR",
		help: "where every node has the directories of its GPUs' MPS daemons, such as the agent's DATA-DIR/mps",
		set:  into(func(c *Config) *string { return &c.Kube.MPSDir }, parseAbsolute)},
	{name: "kube-ingress-service", kind: "HOST:PORT",
		help: "the portal's service by its DNS name; each workspace then has an ingress of its own below apps-domain, for a cluster without a wildcard host",
		set:  into(func(c *Config) *kube.Ingress { return &c.Kube.Ingress }, parseIngressService)},
	{name: "kube-ingress-class", kind: "NAME",
		help: "class of these ingresses (default the cluster's own)",
		set:  into(func(c *Config) *string { return &c.Kube.Ingress.Class }, optional(parseDomain))},
	{name: "kube-ingress-tls-secret", kind: "NAME",
		help: "secret with a certificate for these hosts, which has to be in each project's namespace (default none)",
		set:  into(func(c *Config) *string { return &c.Kube.Ingress.TLSSecret }, optional(parseDomain))},
	{name: "kube-ingress-annotations", kind: "KEY=VALUE,...",
		help: "annotations of these ingresses",
		set:  into(func(c *Config) *map[string]string { return &c.Kube.Ingress.Annotations }, parsePairs)},
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
	{name: "log-level", kind: "LEVEL", def: "info",
		help: "debug, info, warn or error",
		set:  into(func(c *Config) *slog.Level { return &c.LogLevel }, parseLevel)},
	{name: "log-format", kind: "FORMAT", def: "auto",
		help: "text, json, or auto: text on a terminal, json otherwise",
		set:  into(func(c *Config) *string { return &c.LogFormat }, oneOf("auto", "text", "json"))},
}, oidcOptions, noticeOptions)

// agentOptions are what an agent needs.
var agentOptions = []string{"data-dir", "simulate-gpus", "machine-id-file", "server", "code", "cluster-token-file", "authority-certificate",
	"state-dir", "name", "log-level", "log-format"}

// storeOptions are what a command needs that only works on the data.
var storeOptions = []string{"data-dir", "database-url", "log-level", "log-format"}

// into makes an option's set from the field it fills and the parser that
// checks it.
func into[T any](field func(*Config) *T, parse func(string) (T, error)) func(*Config, string) error {
	return func(c *Config, text string) error {
		v, err := parse(text)
		if err == nil {
			*field(c) = v
		}
		return err
	}
}

// textFlag takes any text: values are checked in loadConfig, where all that
// is wrong can be told at once.
type textFlag struct{ text, kind string }

func (f *textFlag) String() string     { return f.text }
func (f *textFlag) Set(s string) error { f.text = s; return nil }
func (f *textFlag) Type() string       { return f.kind }

// bindConfig gives cmd --config and the flags of the named options, of all
// but an agent's when none is named.
func bindConfig(cmd *cobra.Command, only ...string) {
	cmd.Flags().Var(&textFlag{kind: "FILE"}, "config", "YAML file with settings, named like the flags [WEIR_CONFIG]")
	for _, o := range options {
		if len(only) == 0 && !o.agent || slices.Contains(only, o.name) {
			cmd.Flags().Var(&textFlag{text: o.def, kind: o.kind}, o.name, o.help+" ["+o.env()+"]")
		}
	}
}

// source is where a setting's text came from; at names it in an error.
type source struct{ text, at string }

// loadConfig reads the options that bindConfig gave to cmd: the flag wins
// over the environment, that over the file, that over the default. The
// error names everything that is wrong, not only the first thing.
func loadConfig(cmd *cobra.Command, lookupEnv func(string) (string, bool)) (Config, error) {
	c := Config{texts: map[string]string{}}
	configFile := choose(cmd.Flags().Lookup("config"), option{name: "config"}, lookupEnv, nil)
	c.ConfigFile = configFile.text
	file, problems := readConfigFile(configFile)
	for _, o := range options {
		from := source{o.def, o.name}
		if flag := cmd.Flags().Lookup(o.name); flag != nil {
			from = choose(flag, o, lookupEnv, file)
		}
		if err := o.set(&c, from.text); err != nil {
			problems = append(problems, from.at+": "+err.Error())
		}
		c.texts[o.name] = from.text
	}
	problems = append(problems, c.completeIngress()...)
	problems = append(problems, c.checkClusterAgents()...)
	problems = append(problems, c.completeOIDC()...)
	problems = append(problems, c.completeMail()...)
	if len(problems) > 0 {
		return Config{}, &usageError{title: "the configuration cannot be used", problems: problems}
	}
	if c.DataDir == "" {
		c.DataDir = defaultDataDir(os.Geteuid(), lookupEnv)
		c.texts["data-dir"] = c.DataDir
	}
	if c.SharedDir == "" {
		c.SharedDir = filepath.Join(c.DataDir, "shared")
	}
	if c.AuthorityFile == "" {
		c.AuthorityFile = filepath.Join(c.DataDir, "authority.pem")
	}
	if c.StateDir == "" {
		c.StateDir = filepath.Join(c.DataDir, "agent")
	}
	return c, nil
}

// choose finds an option's text. An empty environment variable counts as
// unset, because charts and unit files often set what they do not mean.
func choose(flag *pflag.Flag, o option, lookupEnv func(string) (string, bool), file map[string]source) source {
	if flag.Changed {
		return source{flag.Value.String(), "--" + o.name}
	}
	if text, _ := lookupEnv(o.env()); text != "" {
		return source{text, o.env()}
	}
	if from, ok := file[o.name]; ok {
		return from
	}
	return source{o.def, o.name}
}

func defaultDataDir(uid int, lookupEnv func(string) (string, bool)) string {
	if uid == 0 {
		return "/var/lib/weir"
	}
	if dir, _ := lookupEnv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "weir")
	}
	home, _ := lookupEnv("HOME")
	return filepath.Join(home, ".local", "share", "weir")
}
