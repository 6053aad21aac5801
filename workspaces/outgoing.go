package workspaces

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"weir/models"
	"weir/workspaces/runtime"
)

// Bounds of one start: of the lookup of its names, which leaves most of stepTimeout to the start
// itself, and of the addresses of a name.
const (
	lookupTime   = 1500 * time.Millisecond
	maxAddresses = 16
)

// outgoing returns what a start in a project may reach; nil: all.
func (r *Reconciler) outgoing(ctx context.Context, rule models.Outgoing) *runtime.Outgoing {
	if rule.Access == models.OutgoingAll {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	networks, names := rule.Split()
	o := &runtime.Outgoing{Networks: networks, Names: map[string][]netip.Addr{}}
	addresses, lookups := make([][]netip.Addr, len(names)), sync.WaitGroup{}
	for i, name := range names {
		lookups.Go(func() { addresses[i] = r.lookup(ctx, name) })
	}
	lookups.Wait()
	for i, name := range names {
		if len(addresses[i]) == 0 {
			o.Unknown = append(o.Unknown, name)
			continue
		}
		o.Names[name] = addresses[i]
		for _, a := range addresses[i] {
			o.Networks = append(o.Networks, netip.PrefixFrom(a, 32))
		}
	}
	return o
}

// lookup returns the IPv4 addresses of a name that a sandbox may reach, in their order.
func (r *Reconciler) lookup(ctx context.Context, name string) []netip.Addr {
	found, err := r.config.Lookup(ctx, name)
	if err != nil {
		r.config.Logger.Warn("a host that a project may reach was not found", "host", name, "error", err)
	}
	for i, a := range found {
		found[i] = a.Unmap()
	}
	found = slices.DeleteFunc(found, func(a netip.Addr) bool { return !a.Is4() || !models.MayReach(netip.PrefixFrom(a, 32)) })
	slices.SortFunc(found, netip.Addr.Compare)
	found = slices.Compact(found)
	return found[:min(len(found), maxAddresses)]
}
