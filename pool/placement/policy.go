package placement

// Criterion names what a policy weighs; a smaller value is better.
type Criterion int

const (
	// Order decides between equals: the lower node id.
	Order Criterion = iota
	// SplitsIdle counts idle devices of which only a fraction is taken; one
	// that is exclusive counts twice, because its rest is lost to everybody.
	SplitsIdle
	// NewToProject counts devices that hold no share of the project yet.
	NewToProject
	// LeftoverCores is the GPU cores that stay free on the chosen devices.
	LeftoverCores
	// LeftoverMemory is the memory, in MiB, that stays free there.
	LeftoverMemory
	criterionCount
)

var criterionNames = [criterionCount]string{
	"order", "splits_idle", "new_to_project", "leftover_cores", "leftover_memory",
}

// String is the criterion's stable name, for logs and programs.
func (c Criterion) String() string {
	if c < 0 || c >= criterionCount {
		return "unknown"
	}
	return criterionNames[c]
}

// maxTerms bounds a policy, so that a score is an array and needs no memory.
const maxTerms = 4

// Policy orders the devices that fit, and the nodes that have enough of them:
// by its first term, among equals by its second, and so on; a node costs the
// sum over its devices. Since every term adds up over devices, the best
// devices of a node together are that node's best. The zero Policy takes the
// first node and its first devices.
type Policy struct {
	Name  string
	terms [maxTerms]term
}

type term struct {
	criterion Criterion
	cost      func(*candidate) int64 // never negative; nil: no such term
}

// BestFit fills devices that are in use before it opens idle ones, among
// those prefers the project's own, and of what remains takes the tightest fit
// in cores, then in memory.
func BestFit() Policy {
	return Policy{Name: "best_fit", terms: [maxTerms]term{
		{SplitsIdle, splitsIdle},
		{NewToProject, newToProject},
		{LeftoverCores, (*candidate).leftoverCores},
		{LeftoverMemory, (*candidate).leftoverMemory},
	}}
}

func splitsIdle(c *candidate) int64 {
	switch {
	case len(c.device.Shares) > 0 || c.grant.Cores == Whole:
		return 0
	case c.device.Exclusive:
		return 2
	}
	return 1
}

func newToProject(c *candidate) int64 {
	if c.usage.own {
		return 0
	}
	return 1
}

// score is what the terms of a policy cost, the weightiest first.
type score [maxTerms]int64

func (p *Policy) score(c *candidate) score {
	var s score
	for i := range p.terms {
		if p.terms[i].cost != nil {
			s[i] = p.terms[i].cost(c)
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
