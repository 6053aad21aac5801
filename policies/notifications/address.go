package notifications

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"weir/models"
)

// networks parses a list of valid prefixes.
func networks(list ...string) []netip.Prefix { return models.Map(list, netip.MustParsePrefix) }

var (
	// blockedNetworks are never valid receivers: "this host", link-local addresses
	// with the metadata services of clouds, multicast and reserved addresses, and
	// the metadata services elsewhere: Azure, Alibaba, AWS and Google over IPv6,
	// Oracle.
	blockedNetworks = networks("0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4",
		"168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32",
		"::/128", "fe80::/10", "ff00::/8", "fd00:ec2::254/128", "fd20:ce::254/128")
	// privateNetworks are loopback and private addresses.
	privateNetworks = networks("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10",
		"192.0.0.0/24", "198.18.0.0/15",
		"::1/128", "fc00::/7", "fec0::/10")
	// ipv4Embeddings are IPv6 networks whose addresses embed an IPv4 address at a
	// byte offset.
	ipv4Embeddings = []struct {
		netip.Prefix
		at int
	}{{netip.MustParsePrefix("64:ff9b::/96"), 12}, {netip.MustParsePrefix("64:ff9b:1::/48"), 12}, {netip.MustParsePrefix("2002::/16"), 2},
		{netip.MustParsePrefix("::/96"), 12}}
)

// refusedAddress is the error for an address that webhooks cannot be sent to.
type refusedAddress struct{ reason models.Text }

func (e refusedAddress) Error() string { return e.reason.String() }

// checkAddress refuses addresses that webhooks cannot be sent to.
func checkAddress(addr netip.Addr, allowPrivate bool) error {
	addr = addr.Unmap().WithZone("")
	for _, c := range ipv4Embeddings {
		if c.Contains(addr) && addr != netip.IPv6Loopback() && !addr.IsUnspecified() {
			raw := addr.As16()
			addr = netip.AddrFrom4([4]byte(raw[c.at : c.at+4]))
		}
	}
	switch {
	case within(addr, blockedNetworks):
		return refusedAddress{models.Say("Webhooks cannot be sent to the address %s.", addr.String())}
	case !allowPrivate && within(addr, privateNetworks):
		return refusedAddress{models.Say(
			"The address %s is in a private network. To allow it, run Weir with --webhook-allow-private.", addr.String())}
	}
	return nil
}

func within(addr netip.Addr, list []netip.Prefix) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// dialControl checks the resolved address of each connection, so that a changed
// DNS entry cannot bypass the check.
func dialControl(allowPrivate bool) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("notifications: %w", err)
		}
		return checkAddress(at.Addr(), allowPrivate)
	}
}
