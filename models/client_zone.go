package models

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// ClientZone is the networks of clients that are near each other. Machines measure their
// latency to an address in it.
type ClientZone struct {
	Name     string
	Networks []netip.Prefix
	Address  string // host:port, to which machines connect
}

// ClientZones are zones with different names.
type ClientZones []ClientZone

// Bounds of client zones.
const (
	MaxClientZones   = 32
	maxZoneName      = 30 // characters
	zoneNameAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789-"
)

// ParseClientZones reads NAME=NETWORK[,NETWORK]@HOST:PORT, several separated by semicolons.
func ParseClientZones(text string) (zones ClientZones, err error) {
	for entry := range strings.SplitSeq(text, ";") {
		z, err := parseClientZone(strings.TrimSpace(entry))
		if err != nil {
			return nil, err
		}
		if zones.Has(z.Name) {
			return nil, fmt.Errorf("%q must name each zone once", entry)
		}
		zones = append(zones, z)
	}
	if len(zones) > MaxClientZones {
		return nil, fmt.Errorf("must be at most %d zones", MaxClientZones)
	}
	return zones, nil
}

func parseClientZone(entry string) (z ClientZone, err error) {
	name, rest, _ := strings.Cut(entry, "=")
	networks, address, _ := strings.Cut(rest, "@")
	z = ClientZone{Name: strings.TrimSpace(name), Address: strings.TrimSpace(address)}
	if z.Name == "" || len(z.Name) > maxZoneName || strings.Trim(z.Name, zoneNameAlphabet) != "" {
		return z, fmt.Errorf("%q must begin with a name of up to %d lowercase letters, digits and hyphens", entry, maxZoneName)
	}
	if host, port, err := net.SplitHostPort(z.Address); err != nil || host == "" || port == "" {
		return z, fmt.Errorf("%q must end with @ and an address in the zone, such as @gateway.example.org:443", entry)
	}
	for text := range strings.SplitSeq(networks, ",") {
		network, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return z, fmt.Errorf("%q must be networks such as 10.1.0.0/16,2001:db8::/48", networks)
		}
		z.Networks = append(z.Networks, network.Masked())
	}
	return z, nil
}

// Names are the names of zones, in their order.
func (zones ClientZones) Names() []string {
	return Map(zones, func(z ClientZone) string { return z.Name })
}

// Has reports whether there is a zone of a name.
func (zones ClientZones) Has(name string) bool { return slices.Contains(zones.Names(), name) }

// Of is the name of the zone of a client's IP address: the one with the smallest network
// that contains it; empty: none does.
func (zones ClientZones) Of(client string) string {
	address, err := netip.ParseAddr(client)
	if err != nil {
		return ""
	}
	name, bits := "", -1
	for _, z := range zones {
		for _, network := range z.Networks {
			if network.Contains(address.Unmap().WithZone("")) && network.Bits() > bits {
				name, bits = z.Name, network.Bits()
			}
		}
	}
	return name
}

// LatencyAge is how old a measured latency can be.
const LatencyAge = 10 * time.Minute

// ProviderLatency is the latency between a provider and a client zone: the time in which a
// connection is opened.
type ProviderLatency struct {
	ProviderID int64
	Zone       string
	Micros     int64
	MeasuredAt time.Time
}

// smoothing is the weight of what is known of a latency beside a new measurement; see
// RFC 6298, section 2.
const smoothing = 7

// After is a latency when another one was measured; the zero value has none.
func (l ProviderLatency) After(measured ProviderLatency) ProviderLatency {
	if measured.MeasuredAt.Sub(l.MeasuredAt) <= LatencyAge {
		measured.Micros = (smoothing*l.Micros + measured.Micros) / (smoothing + 1)
	}
	return measured
}

// Milliseconds is the latency in whole milliseconds, at least 1.
func (l ProviderLatency) Milliseconds() int64 { return cmp.Or((l.Micros+500)/1000, 1) }
