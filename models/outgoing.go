package models

import (
	"cmp"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// OutgoingAccess says to which machines a project may connect.
type OutgoingAccess string

// Kinds of outgoing access.
const (
	OutgoingAll    OutgoingAccess = "all"
	OutgoingNone   OutgoingAccess = "none"
	OutgoingListed OutgoingAccess = "listed"
)

// OutgoingAccesses are all of them, the default first.
var OutgoingAccesses = []OutgoingAccess{OutgoingAll, OutgoingNone, OutgoingListed}

// Words names the access on pages.
func (a OutgoingAccess) Words() Text {
	switch a {
	case OutgoingNone:
		return Say("None")
	case OutgoingListed:
		return Say("Listed hosts only")
	default:
		return Say("All that the installation allows")
	}
}

// Outgoing says to which machines the workspaces, runs and deployments of a project may open
// connections. It applies to what starts afterwards.
type Outgoing struct {
	Access OutgoingAccess `json:"access" gorm:"default:all" enum:"all,none,listed" doc:"to which machines workspaces, runs and deployments may open connections; applies to what starts afterwards"`
	Hosts  []string       `json:"hosts,omitempty" maxItems:"64" gorm:"serializer:json;not null" doc:"for listed: names, IPv4 addresses, and networks such as 192.0.2.0/24; names are looked up at each start, and no others are known there"`
}

// maxOutgoingHosts bounds the lookups and the routes of a start.
const maxOutgoingHosts = 64

// Check validates and normalizes the access of a project.
func (o *Outgoing) Check(field string, p *Problems) {
	if o.Access = cmp.Or(o.Access, OutgoingAll); !slices.Contains(OutgoingAccesses, o.Access) {
		p.Add(field+".access", "must be one of %s", "all, none, listed")
	}
	field += ".hosts"
	switch n := len(o.Hosts); {
	case o.Access == OutgoingListed && n == 0:
		p.Add(field, "list at least one host, or allow none")
	case o.Access != OutgoingListed && n > 0:
		p.Add(field, "can be given only where listed hosts are allowed")
	case n > maxOutgoingHosts:
		p.Add(field, "must be at most %d hosts; has %d", maxOutgoingHosts, n)
	default:
		for i, host := range o.Hosts {
			o.Hosts[i] = checkHost(field, host, p)
		}
		o.Hosts = slices.Compact(slices.Sorted(slices.Values(o.Hosts)))
	}
}

// Equal reports whether both allow the same.
func (o Outgoing) Equal(p Outgoing) bool {
	return o.Access == p.Access && slices.Equal(o.Hosts, p.Hosts)
}

// hostName is a name of RFC 1123, and address a name that would be mistaken for one.
var (
	hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.|$))+$`)
	address  = regexp.MustCompile(`(^|\.)[0-9]+$`)
)

func checkHost(field, host string, p *Problems) string {
	host = strings.ToLower(strings.TrimSpace(host))
	network, isNetwork := hostNetwork(host)
	switch {
	case !isNetwork && (len(host) > 253 || strings.HasSuffix(host, ".") || !hostName.MatchString(host) || address.MatchString(host)):
		p.Add(field, "%q is not a name, an IPv4 address or an IPv4 network such as %s", host, "192.0.2.0/24")
	case isNetwork && network != network.Masked():
		p.Add(field, "%s is not the start of its network, which is %s", host, network.Masked().String())
	case isNetwork && !MayReach(network):
		p.Add(field, "%s is never reachable: it is a loopback, link-local, multicast or reserved address, or one at which clouds give out credentials", host)
	}
	return host
}

// hostNetwork returns the network of an address or network in its usual notation.
func hostNetwork(host string) (netip.Prefix, bool) {
	if a, err := netip.ParseAddr(host); err == nil && a.Is4() {
		return netip.PrefixFrom(a, 32), true
	}
	p, err := netip.ParsePrefix(host)
	return p, err == nil && p.Addr().Is4()
}

// Split returns the networks among the hosts, and the names, which have to be looked up.
func (o Outgoing) Split() (networks []netip.Prefix, names []string) {
	for _, host := range o.Hosts {
		if network, ok := hostNetwork(host); ok {
			networks = append(networks, network)
		} else {
			names = append(names, host)
		}
	}
	return networks, names
}

// ClosedNetworks are reached by no sandbox: link-local addresses, and those at which clouds
// give out the credentials of the machine.
var ClosedNetworks = prefixes("169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32")

// unroutedNetworks are of no other machine: “this network”, loopback, multicast and reserved.
var unroutedNetworks = prefixes("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3")

func prefixes(all ...string) []netip.Prefix { return Map(all, netip.MustParsePrefix) }

// MayReach reports whether a sandbox may reach at least a part of a network.
func MayReach(network netip.Prefix) bool {
	return !slices.ContainsFunc(slices.Concat(ClosedNetworks, unroutedNetworks), func(closed netip.Prefix) bool {
		return closed.Bits() <= network.Bits() && closed.Contains(network.Addr())
	})
}
