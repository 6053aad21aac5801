package placement

// Criterion names what a policy weighs; a smaller value is better.
type Criterion int

const (
	// Order decides between equals: the lower node id.
	Order Criterion = iota
	// SplitsIdle counts idle devices of which only a fraction is taken; one
	// that has one holder counts twice, because its rest is lost to everybody.
	SplitsIdle
	// NewToProject counts devices that hold no share of the project yet.
	NewToProject
	// Fragmentation is how much of the free GPU the typical demands of the past
	// could use before and not after, less what the demand itself uses: the
	// published grade of [fleet.FGD] turned round, 0..100.
	Fragmentation
	// Unlinked counts the pairs of chosen devices without NVLink.
	Unlinked
	// LeftoverCores is the GPU cores that stay free on the chosen devices.
	LeftoverCores
	// LeftoverMemory is the memory, in MiB, that stays free there.
	LeftoverMemory
	// OpensNode is 1 for a node of which nothing is held.
	OpensNode
	// OpensDevices counts chosen devices of which nothing is held.
	OpensDevices
	// OtherSizes is 0 where a node holds demands of the same size only, 1
	// where it holds others too, 2 where nothing, 3 where only others.
	OtherSizes
	// NodeFree is the GPU cores free on the node beforehand.
	NodeFree
	// Lot is drawn for the node, and for each device.
	Lot
	criterionCount
)

var criterionNames = [criterionCount]string{
	"order", "splits_idle", "new_to_project", "fragmentation", "unlinked", "leftover_cores", "leftover_memory",
	"opens_node", "opens_devices", "other_sizes", "node_free", "lot",
}

// String is the criterion's stable name, for logs and programs.
func (c Criterion) String() string {
	if c < 0 || c >= criterionCount {
		return "unknown"
	}
	return criterionNames[c]
}

// maxTerms bounds a policy, so that a score is an array and needs no memory.
const maxTerms = 6

// Policy orders the devices that fit, and the nodes that have enough of them:
// by its first term, among equals by its second, and so on. See [PolicyNamed].
// The zero Policy takes the first node and its first devices. A policy may be
// used by many at once.
type Policy struct {
	Name     string
	terms    [maxTerms]term
	expected *expected // what is to come; nil where the policy does not ask
	seed     int64     // of the lots
}

// term is one criterion and how it is counted: exactly one of the functions
// is set, and what it counts is never negative.
type term struct {
	criterion Criterion
	device    func(*contest, *candidate) int64  // adds up over the devices
	node      func(*contest, *Node) int64       // the same for all devices of a node
	set       func(*contest, []candidate) int64 // of devices together
}

func splitsIdle(_ *contest, c *candidate) int64 {
	switch {
	case len(c.device.Shares) > 0 || c.grant.Cores == c.device.usable():
		return 0
	case c.device.exclusiveUse():
		return 2
	}
	return 1
}

func newToProject(_ *contest, c *candidate) int64 {
	if c.usage.own {
		return 0
	}
	return 1
}

func opensDevice(_ *contest, c *candidate) int64 {
	if len(c.device.Shares) > 0 {
		return 0
	}
	return 1
}

func opensNode(_ *contest, n *Node) int64 {
	for i := range n.Devices {
		if len(n.Devices[i].Shares) > 0 {
			return 0
		}
	}
	return 1
}

func nodeFree(_ *contest, n *Node) (free int64) {
	for i := range n.Devices {
		cores, _ := Free(n.Devices[i])
		free += cores
	}
	return free
}

// otherSizes looks at who holds what on a node. The size of a demand is the
// number of its GPUs, or 0 where it takes a fraction of each.
func otherSizes(c *contest, n *Node) int64 {
	wanted := 0
	if c.demand.Cores == Whole {
		wanted = c.demand.GPUs
	}
	sizes := map[int64]int{}
	for i := range n.Devices {
		for j := range n.Devices[i].Shares {
			s := &n.Devices[i].Shares[j]
			if size, seen := sizes[s.Holder]; s.Cores < Whole || seen && size == 0 {
				sizes[s.Holder] = 0
			} else {
				sizes[s.Holder] = size + 1
			}
		}
	}
	same, other := false, false
	for _, size := range sizes {
		same, other = same || size == wanted, other || size != wanted
	}
	switch {
	case same && other:
		return 1
	case same:
		return 0
	case other:
		return 3
	}
	return 2
}

// score is what the terms of a policy cost, the weightiest first.
type score [maxTerms]int64

// ofDevice counts the terms that look at one device alone.
func (p *Policy) ofDevice(c *contest, d *candidate) score {
	var s score
	for i := range p.terms {
		if p.terms[i].device != nil {
			s[i] = p.terms[i].device(c, d)
		}
	}
	return s
}

// ofNode counts the terms that are the same for all devices of a node.
func (p *Policy) ofNode(c *contest, n *Node) score {
	var s score
	for i := range p.terms {
		if p.terms[i].node != nil {
			s[i] = p.terms[i].node(c, n)
		}
	}
	return s
}

// ofSet counts devices together; what each costs alone is known already.
func (p *Policy) ofSet(c *contest, chosen []candidate) score {
	var s score
	for i := range chosen {
		s = s.plus(chosen[i].score)
	}
	for i := range p.terms {
		if p.terms[i].set != nil {
			s[i] = p.terms[i].set(c, chosen)
		}
	}
	return s
}

func (s score) plus(other score) score {
	for i := range s {
		s[i] = add(s[i], other[i])
	}
	return s
}

// differs is the first term in which two scores differ, or maxTerms.
func (s *score) differs(other *score) int {
	for i := range s {
		if s[i] != other[i] {
			return i
		}
	}
	return maxTerms
}

func (s *score) compare(other *score) int {
	i := s.differs(other)
	switch {
	case i == maxTerms:
		return 0
	case s[i] < other[i]:
		return -1
	}
	return 1
}
