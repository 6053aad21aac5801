package local

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/models"
	"weir/workspaces/runtime"
)

// closedRoutes are the networks that a sandbox must not reach: those that none may, the
// addresses of this machine and its inner networks, unless its project allows a part of one, and
// all but what its project allows.
func closedRoutes(machine []netip.Prefix, allowed *runtime.Outgoing) []netip.Prefix {
	closed := slices.Clone(models.ClosedNetworks)
	if allowed != nil {
		closed = append(closed, except(slices.Concat(allowed.Networks, []netip.Prefix{innerNetwork}))...)
		closed = append(closed, netip.PrefixFrom(innerDNS, 32))
	}
	for _, own := range machine {
		var named []netip.Prefix
		if allowed != nil {
			named = slices.DeleteFunc(slices.Clone(allowed.Networks), func(p netip.Prefix) bool { return p.Bits() < own.Bits() || own.IsSingleIP() })
		}
		closed = append(closed, exceptIn(own, named)...)
	}
	return closed
}

// machineNetworks are the IPv4 addresses of this machine, and its inner networks: those of containers
// and virtual machines on it.
func machineNetworks() (list []netip.Prefix, err error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	outer := outerInterfaces()
	for _, i := range interfaces {
		addresses, _ := i.Addrs() // none if it has been removed
		for _, a := range addresses {
			own, ok := a.(*net.IPNet)
			if !ok {
				continue
			}
			ip, _ := netip.AddrFromSlice(own.IP)
			if ip = ip.Unmap(); !ip.Is4() || ip.IsLoopback() {
				continue
			}
			list = append(list, netip.PrefixFrom(ip, 32))
			if bits, _ := own.Mask.Size(); isInnerBridge(i.Name) && !outer[i.Name] {
				list = append(list, netip.PrefixFrom(ip, bits).Masked())
			}
		}
	}
	return list, nil
}

// isInnerBridge reports whether an interface is a bridge that connects no device of this machine: its
// ports lead to containers and virtual machines.
func isInnerBridge(name string) bool {
	const links = "/sys/class/net/"
	if _, err := os.Stat(links + name + "/bridge"); err != nil {
		return false
	}
	ports, err := os.ReadDir(links + name + "/brif")
	return err == nil && !slices.ContainsFunc(ports, func(port os.DirEntry) bool {
		_, err := os.Stat(links + port.Name() + "/device")
		below, _ := filepath.Glob(links + port.Name() + "/lower_*") // as a bond or a VLAN has
		return err == nil || len(below) > 0
	})
}

// outerInterfaces are those by which this machine reaches all others.
func outerInterfaces() map[string]bool {
	outer := map[string]bool{}
	b, _ := os.ReadFile("/proc/net/route") // none where there are no routes
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[1] == "00000000" {
			outer[f[0]] = true
		}
	}
	return outer
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
