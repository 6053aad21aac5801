package config

import (
	"net/netip"
	"strings"
	"time"

	"weir/pool/placement"
	"weir/storage/rules"
)

// serverSettings are the settings of a server in every mode.
var serverSettings = []setting{
	{name: "listen", kind: "HOST:PORT", defaultText: "127.0.0.1:8080",
		help: "address to listen on",
		set:  into(func(c *Config) *string { return &c.Listen }, parseListen)},
	{name: "external-url", kind: "URL",
		help: "URL of the portal as browsers reach it, such as https://weir.example.org",
		set:  into(func(c *Config) *string { return &c.ExternalURL }, ParseOrigin)},
	{name: "trusted-proxies", kind: "NETWORK,...",
		help: "reverse proxies to accept X-Forwarded-For from, as addresses or networks (default none)",
		set:  into(func(c *Config) *[]netip.Prefix { return &c.TrustedProxies }, listOf(parseProxy))},
	{name: "hosts", kind: "NAME,...",
		help: "host names of the portal beside those of external-url and of this machine, localhost and addresses; others get status 421",
		set:  into(func(c *Config) *[]string { return &c.Hosts }, listOf(parseHost))},
	{name: "metrics-token-file", kind: "FILE",
		help: "file with the token that a scraper of /metrics sends (default none: there are no metrics)",
		set:  into(func(c *Config) *string { return &c.MetricsFile }, parseDir)},
	{name: "apps-domain", kind: "DOMAIN", defaultText: "localhost",
		help: "domain under which each workspace has its own host name",
		set:  into(func(c *Config) *string { return &c.AppsDomain }, parseDomain)},
	{name: "data-dir", kind: "DIR",
		help: "data directory (default $XDG_DATA_HOME/weir, as root /var/lib/weir)",
		set:  into(func(c *Config) *string { return &c.DataDir }, parseDir)},
	{name: "database-url", kind: "URL", secret: true,
		help: "URL of a PostgreSQL database, postgres://… (default SQLite in the data directory)",
		set:  into(func(c *Config) *string { return &c.DatabaseURL }, optional(parsePostgres))},
	{name: "simulate-gpus", kind: "MODEL:COUNT,...",
		help: "simulate these GPUs, such as h100:8 (models: " + strings.Join(gpuModels, ", ") + ")",
		set:  into(func(c *Config) *[]SimulatedGPUs { return &c.SimulateGPUs }, parseGPUs)},
	{name: "sandbox-uid", kind: "UID", defaultText: "62000",
		help: "user ID of workspaces without one of their own, and of the shared directories, when Weir runs as root",
		set:  into(func(c *Config) *int { return &c.SandboxUID }, parseUID)},
	{name: "id-range", kind: "FIRST-LAST", defaultText: "1900000000-1900999999",
		help: "user and group IDs for members and projects when Weir runs as root: FIRST plus their numbers. It can grow later; empty: all share sandbox-uid",
		set:  into(func(c *Config) *rules.IDRange { return &c.IDRange }, optional(parseIDRange))},
	{name: "session-lifetime", kind: "DURATION", defaultText: "12h",
		help: "how long a sign-in lasts",
		set:  into(func(c *Config) *time.Duration { return &c.SessionLifetime }, durationFrom(time.Minute))},
	{name: "invitation-lifetime", kind: "DURATION", defaultText: "168h",
		help: "how long an invitation can be accepted",
		set:  into(func(c *Config) *time.Duration { return &c.InvitationLifetime }, durationFrom(time.Minute))},
	{name: "password-link-lifetime", kind: "DURATION", defaultText: "1h",
		help: "how long a link to set a new password is valid",
		set:  into(func(c *Config) *time.Duration { return &c.PasswordLinkLifetime }, durationFrom(time.Minute))},
	{name: "shutdown-grace", kind: "DURATION", defaultText: "10s",
		help: "how long open requests may take to finish on shutdown",
		set:  into(func(c *Config) *time.Duration { return &c.ShutdownGrace }, durationFrom(0))},
	{name: "placement-policy", kind: "NAME", defaultText: "weir",
		help: "policy that chooses GPUs: " + strings.Join(placement.Policies(), ", "),
		set:  into(func(c *Config) *string { return &c.PlacementPolicy }, oneOf(placement.Policies()...))},
	{name: "runtime", kind: "NAME", defaultText: "local",
		help: "where workspaces run: local (on this machine) or kube (in a Kubernetes cluster)",
		set:  into(func(c *Config) *string { return &c.Runtime }, oneOf("local", "kube"))},
	{name: "shared-dir", kind: "DIR",
		help: "shared directories as this machine mounts them (default DATA-DIR/shared)",
		set:  into(func(c *Config) *string { return &c.SharedDir }, parseDir)},
}
