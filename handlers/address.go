package handlers

import (
	"net"
	"net/netip"

	"github.com/labstack/echo/v4"
)

// clientAddress finds where a request comes from: the other end of its
// connection, since a header could name any address. Only where that end is a
// trusted proxy does X-Forwarded-For count, from its end to the first address
// that is no such proxy.
func clientAddress(trusted []netip.Prefix) echo.IPExtractor {
	if len(trusted) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range trusted {
		options = append(options, echo.TrustIPRange(&net.IPNet{IP: p.Masked().Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}
