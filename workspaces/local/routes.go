package local

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"weir/models"
	"weir/workspaces/runtime"
)

// closedRoutes are the networks that a sandbox must not reach: those that none may, the
// addresses of this machine, and all but what its project allows.
func closedRoutes(machine []net.Addr, allowed *runtime.Outgoing) []netip.Prefix {
	closed := slices.Clone(models.ClosedNetworks)
	if allowed != nil {
		closed = append(closed, except(slices.Concat(allowed.Networks, []netip.Prefix{innerNetwork}))...)
		closed = append(closed, netip.PrefixFrom(innerDNS, 32))
	}
	for _, a := range machine {
		own, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		if ip, _ := netip.AddrFromSlice(own.IP); ip.Unmap().Is4() && !ip.Unmap().IsLoopback() {
			closed = append(closed, netip.PrefixFrom(ip.Unmap(), 32))
		}
	}
	return closed
}

// except returns the fewest networks that contain every IPv4 address but those of some networks.
func except(allowed []netip.Prefix) []netip.Prefix {
	return exceptIn(netip.MustParsePrefix("0.0.0.0/0"), allowed)
}

func exceptIn(all netip.Prefix, allowed []netip.Prefix) []netip.Prefix {
	allowed = slices.DeleteFunc(slices.Clone(allowed), func(p netip.Prefix) bool { return !p.Overlaps(all) })
	if len(allowed) == 0 {
		return []netip.Prefix{all}
	}
	if slices.ContainsFunc(allowed, func(p netip.Prefix) bool { return p.Bits() <= all.Bits() }) {
		return nil
	}
	low, high := halves(all)
	return append(exceptIn(low, allowed), exceptIn(high, allowed)...)
}

// halves divides a network of more than one address.
func halves(p netip.Prefix) (low, high netip.Prefix) {
	b := p.Addr().As4()
	b[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	return netip.PrefixFrom(p.Addr(), p.Bits()+1), netip.PrefixFrom(netip.AddrFrom4(b), p.Bits()+1)
}

// knownNames are the lines of /etc/hosts for the names that a sandbox may know, and the
// settings of a resolver that knows no others.
func knownNames(o *runtime.Outgoing) (hosts, resolver string) {
	lines := []string{"127.0.0.1\tlocalhost"}
	for name, addresses := range o.Names {
		for _, a := range addresses {
			lines = append(lines, fmt.Sprintf("%s\t%s", a, name))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n", "# The project restricts outgoing connections: /etc/hosts has the names that are known.\n"
}
