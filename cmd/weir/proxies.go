package main

import (
	"fmt"
	"net/netip"
	"strings"
)

// parseProxies reads networks and single addresses, parted by commas.
func parseProxies(text string) (list []netip.Prefix, err error) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		p, err := netip.ParsePrefix(part)
		if a, addrErr := netip.ParseAddr(part); addrErr == nil && a.Zone() == "" {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q must be an address or a network, such as 10.0.0.0/8", part)
		}
		list = append(list, p.Masked())
	}
	return list, nil
}
