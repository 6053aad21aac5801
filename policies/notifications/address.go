package notifications

import (
	"fmt"
	"net/netip"
	"syscall"

	"weir/models"
)

// networks reads a list that is known to be good.
func networks(list ...string) (all []netip.Prefix) {
	for _, text := range list {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

var (
	// blockedNetworks are addresses at which no receiver can be: this host on this
	// network, link-local ones (clouds tell machines about themselves there),
	// multicast, what is reserved, and where clouds have put such services
	// beside: Azure, Alibaba, AWS and Google over IPv6, Oracle.
	blockedNetworks = networks("0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32",
		"::/128", "fe80::/10", "ff00::/8", "fd00:ec2::254/128", "fd20:ce::254/128")
	// privateNetworks are addresses of one's own machine and networks.
	privateNetworks = networks("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15",
		"::1/128", "fc00::/7", "fec0::/10")
	// ipv4Embeddings are IPv6 networks whose addresses hold an IPv4 address, from
	// that byte on.
	ipv4Embeddings = []struct {
		netip.Prefix
		at int
	}{{netip.MustParsePrefix("64:ff9b::/96"), 12}, {netip.MustParsePrefix("64:ff9b:1::/48"), 12}, {netip.MustParsePrefix("2002::/16"), 2},
		{netip.MustParsePrefix("::/96"), 12}}
)

// refusedAddress is an address to which no webhook goes.
type refusedAddress struct{ why models.Text }

func (e refusedAddress) Error() string { return e.why.String() }

// checkAddress refuses addresses that are not for webhooks.
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
		return refusedAddress{models.Say("The address %s is in a private network. To allow it, run Weir with --webhook-allow-private.", addr.String())}
	}
	return nil
}

func within(addr netip.Addr, list []netip.Prefix) bool {
	for _, p := range list {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// dialControl checks an address when it is dialled, after its name was
// resolved: a name that means another address by then helps nobody.
func dialControl(allowPrivate bool) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("notifications: %w", err)
		}
		return checkAddress(at.Addr(), allowPrivate)
	}
}
