package config

import (
	"fmt"
	"net/netip"
)

// nfsSettings are the settings of “weir nfs”.
var nfsSettings = []setting{
	{name: "nfs-listen", kind: "ADDRESS:PORT", defaultText: "0.0.0.0:2049", notServe: true,
		help: "address to listen on for NFSv4",
		set:  into(func(c *Config) *netip.AddrPort { return &c.NFS.Listen }, parseAddrPort)},
	{name: "nfs-path", kind: "PATH", defaultText: "/weir", notServe: true,
		help: "path of the exports as clients mount them",
		set:  into(func(c *Config) *string { return &c.NFS.Path }, parseAbsolute)},
	{name: "nfs-clients", kind: "NETWORK,...", notServe: true,
		help: "nodes that may mount the directories of projects and the public ones, as addresses or networks",
		set:  into(func(c *Config) *[]netip.Prefix { return &c.NFS.Nodes }, listOf(parseProxy))},
	{name: "nfs-server-clients", kind: "NETWORK,...", notServe: true,
		help: "machines of servers, which may mount everything, as addresses or networks (default none)",
		set:  into(func(c *Config) *[]netip.Prefix { return &c.NFS.Servers }, listOf(parseProxy))},
}

func parseAddrPort(text string) (netip.AddrPort, error) {
	at, err := netip.ParseAddrPort(text)
	if err != nil || at.Port() == 0 || at.Addr().Zone() != "" {
		return at, fmt.Errorf("%q must be an address and a port, such as 10.0.0.9:2049", text)
	}
	return at, nil
}
