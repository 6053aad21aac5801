package config

import (
	"net/netip"
	"strings"
	"time"

	"weir/pool/placement"
)

// serverSettings are those of the program wherever it runs.
var serverSettings = []setting{
	{name: "listen", kind: "HOST:PORT", def: "127.0.0.1:8080",
		help: "address to serve on",
		set:  into(func(c *Config) *string { return &c.Listen }, parseListen)},
	{name: "external-url", kind: "URL",
		help: "the portal's address as browsers see it, such as https://weir.example.org",
		set:  into(func(c *Config) *string { return &c.ExternalURL }, ParseOrigin)},
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
}
