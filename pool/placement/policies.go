package placement

import (
	"cmp"
	"fmt"
	"strings"

	"weir/pool/placement/fleet"
)

// The policies' names are those of [fleet], which says where each was
// published. The pool knows no CPU of its machines, and of shares whose they
// are; so the published scores are followed in what they say of GPUs.
var makers = []struct {
	name string
	make func(history []Demand, seed int64) Policy
}{
	{fleet.Random, random},
	{fleet.DotProduct, fixed(dotProduct)},
	{fleet.Clustering, fixed(clustering)},
	{fleet.Packing, fixed(packing)},
	{fleet.BestFit, fixed(bestFit)},
	{fleet.FGD, fgd},
	{fleet.Weir, weir},
}

// Policies are the names that [PolicyNamed] knows, the simplest first.
func Policies() []string {
	names := make([]string, len(makers))
	for i := range makers {
		names[i] = makers[i].name
	}
	return names
}

// PolicyNamed is the policy of that name, or Weir's own where the name is
// empty; it fails on a name that is none of [Policies]. What fgd and weir
// expect to come they learn from history, where a demand that stands twice is
// twice as likely; an empty one teaches nothing, and the policy is [BestFit]
// and says so. The seed is for random alone.
func PolicyNamed(name string, history []Demand, seed int64) (Policy, error) {
	if name == "" {
		name = fleet.Default
	}
	for _, m := range makers {
		if m.name == name {
			p := m.make(history, seed)
			p.Name = cmp.Or(p.Name, name)
			return p, nil
		}
	}
	return Policy{}, fmt.Errorf("there is no placement policy %q; there are %s", name, strings.Join(Policies(), ", "))
}

// BestFit fills devices that are in use before it opens idle ones, among
// those prefers the project's own, then devices linked to each other, and of
// what remains takes the tightest fit in cores, then in memory.
func BestFit() Policy { return Policy{Name: fleet.BestFit, terms: bestFit} }

var (
	bestFit = [maxTerms]term{
		{criterion: SplitsIdle, device: splitsIdle},
		{criterion: NewToProject, device: newToProject},
		{criterion: Unlinked, set: unlinked},
		{criterion: LeftoverCores, device: leftoverCores},
		{criterion: LeftoverMemory, device: leftoverMemory},
	}
	// Without CPU the product has one factor that differs between nodes.
	dotProduct = [maxTerms]term{
		{criterion: NodeFree, node: nodeFree},
		{criterion: Unlinked, set: unlinked},
		{criterion: LeftoverCores, device: leftoverCores},
		{criterion: LeftoverMemory, device: leftoverMemory},
	}
	clustering = [maxTerms]term{
		{criterion: OtherSizes, node: otherSizes},
		{criterion: NodeFree, node: nodeFree},
		{criterion: Unlinked, set: unlinked},
		{criterion: LeftoverCores, device: leftoverCores},
		{criterion: LeftoverMemory, device: leftoverMemory},
	}
	packing = [maxTerms]term{
		{criterion: OpensNode, node: opensNode},
		{criterion: OpensDevices, device: opensDevice},
		{criterion: Unlinked, set: unlinked},
		{criterion: LeftoverCores, device: leftoverCores},
		{criterion: LeftoverMemory, device: leftoverMemory},
	}
)

func fixed(terms [maxTerms]term) func([]Demand, int64) Policy {
	return func([]Demand, int64) Policy { return Policy{terms: terms} }
}

// random draws a node, and of it the devices. The lots are drawn anew for
// every state of the pool, and the same for the same state and seed.
func random(_ []Demand, seed int64) Policy {
	return Policy{seed: seed, terms: [maxTerms]term{
		{criterion: Lot, node: func(c *contest, n *Node) int64 { return c.lot(n.ID) }},
		{criterion: Lot, device: func(c *contest, d *candidate) int64 { return c.lot(-d.device.ID) }},
	}}
}

// fgd is the published measure; what it grades the same, the links decide and
// then the tightest fit. See [fleet.FGD].
func fgd(history []Demand, _ int64) Policy {
	return learned(history, [maxTerms]term{
		{criterion: Fragmentation, set: fragmentation},
		{criterion: Unlinked, set: unlinked},
		{criterion: LeftoverCores, device: leftoverCores},
		{criterion: LeftoverMemory, device: leftoverMemory},
	})
}

// weir knows what fgd does not: the rest of a device that a project has opened
// serves that project alone. So it first takes devices that the project has
// opened already. Links come after fragmentation, because a link that is
// missing slows one demand and a fragment keeps others out; the grade is
// coarse enough to leave them a say.
func weir(history []Demand, _ int64) Policy {
	return learned(history, [maxTerms]term{
		{criterion: NewToProject, device: newToProject},
		{criterion: Fragmentation, set: fragmentation},
		{criterion: Unlinked, set: unlinked},
		{criterion: LeftoverCores, device: leftoverCores},
		{criterion: LeftoverMemory, device: leftoverMemory},
	})
}

// learned is a policy for a history, or [BestFit] where that teaches nothing.
func learned(history []Demand, terms [maxTerms]term) Policy {
	if e := newExpected(history); e != nil {
		return Policy{expected: e, terms: terms}
	}
	return BestFit()
}
