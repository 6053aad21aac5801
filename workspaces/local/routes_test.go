package local

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir/workspaces/runtime"
)

// Every address is either allowed or in exactly one of the networks that except returns.
func TestExceptIsTheComplement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		address := rapid.Custom(func(t *rapid.T) netip.Addr {
			// Few high bytes, so that networks overlap and touch.
			return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, rapid.Uint32Range(0, 3).Draw(t, "high")<<30|rapid.Uint32().Draw(t, "low")>>8)))
		})
		var allowed []netip.Prefix
		for range rapid.IntRange(0, 6).Draw(t, "networks") {
			p, _ := address.Draw(t, "address").Prefix(rapid.IntRange(0, 32).Draw(t, "bits"))
			allowed = append(allowed, p)
		}
		rest := except(allowed)
		samples := []netip.Addr{address.Draw(t, "sample")}
		for _, p := range slices.Concat(allowed, rest) { // edges
			samples = append(samples, p.Addr(), p.Addr().Prev(), last(p), last(p).Next())
		}
		for _, a := range samples {
			if !a.IsValid() || !a.Is4() {
				continue
			}
			in := 0
			for _, p := range rest {
				if p.Contains(a) {
					in++
				}
			}
			if may := slices.ContainsFunc(allowed, func(p netip.Prefix) bool { return p.Contains(a) }); in > 1 || may == (in == 1) {
				t.Fatalf("%s is allowed: %t, and in %d of %v", a, may, in, rest)
			}
		}
	})
}

func last(p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	n := binary.BigEndian.Uint32(b[:]) | uint32(uint64(1)<<(32-p.Bits())-1)
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n)))
}

// What a project allows opens neither this machine nor what no sandbox may reach, and closes
// neither the network of the sandbox itself.
func TestClosedRoutes(t *testing.T) {
	machine := []netip.Prefix{netip.MustParsePrefix("10.1.2.3/32"), netip.MustParsePrefix("172.17.0.1/32"), netip.MustParsePrefix("172.17.0.0/16")}
	closes := func(o *runtime.Outgoing, address string) bool {
		a, best, closed := netip.MustParseAddr(address), -1, false
		for _, p := range append(closedRoutes(machine, o), innerNetwork) { // the kernel takes the most specific route
			if p.Contains(a) && p.Bits() > best {
				best, closed = p.Bits(), p != innerNetwork
			}
		}
		return closed
	}
	all := &runtime.Outgoing{Networks: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}
	some := &runtime.Outgoing{Networks: []netip.Prefix{netip.MustParsePrefix("10.1.2.0/24"), netip.MustParsePrefix("203.0.112.7/32"),
		netip.MustParsePrefix("172.17.0.8/32")}}
	for _, c := range []struct {
		address               string
		nothing, all, some, x bool // whether it is closed; x where no rule is given
	}{
		{"198.51.100.7", true, false, true, false},
		{"10.1.2.4", true, false, false, false},
		{"10.1.3.4", true, false, true, false},
		{"203.0.112.7", true, false, false, false},
		{"10.1.2.3", true, true, true, true},
		{"172.17.0.1", true, true, true, true},
		{"172.17.0.7", true, true, true, true}, // a container on this machine
		{"172.17.0.8", true, true, false, true},
		{"169.254.169.254", true, true, true, true},
		{"203.0.113.2", false, false, false, false}, // the way out
		{"203.0.113.3", true, true, true, false},    // names
	} {
		got := []bool{closes(&runtime.Outgoing{}, c.address), closes(all, c.address), closes(some, c.address), closes(nil, c.address)}
		if !slices.Equal(got, []bool{c.nothing, c.all, c.some, c.x}) {
			t.Errorf("%s is closed %v", c.address, got)
		}
	}
}
