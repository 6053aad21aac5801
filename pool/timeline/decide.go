package timeline

import "math"

// Request is a request for a reservation.
type Request struct {
	ID         int64 // unique
	Score      float64
	Demand     Demand
	Preference Preference
	Part       bool // a part at the beginning of the window and the rest later is acceptable
	Later      bool // a later beginning in the window is acceptable
}

// Outcome is the kind of a decision.
type Outcome int

// Outcomes.
const (
	Refused Outcome = iota
	Granted         // at the beginning of the window
	Partial         // a part at the beginning of the window, the rest later in it
	Delayed         // all of it later in the window
	outcomes
)

var outcomeNames = [outcomes]string{"refused", "granted", "partial", "delayed"}

// String is the outcome's stable name, for logs and programs.
func (o Outcome) String() string {
	if o < 0 || o >= outcomes {
		return "invalid"
	}
	return outcomeNames[o]
}

// Decision is the answer to a request.
type Decision struct {
	Request int64
	Outcome Outcome
	Grants  []Grant // none if refused; the part comes before the rest
	// Earliest is when all of a refused request could begin, at or after the beginning
	// of its window; math.MaxInt64 if not even the empty pool could meet it.
	Earliest int64
}

// Decide decides one request and enters what it grants.
func (c *Calendar) Decide(r Request) Decision {
	x := Decision{Request: r.ID}
	all, ok := c.Earliest(r.Demand, r.Preference)
	switch {
	case ok && all[0].Span.From == r.Demand.Window.From:
		x.Outcome, x.Grants = Granted, all
	case r.Part && c.part(r, &x):
		return x // entered already
	case ok && r.Later:
		x.Outcome, x.Grants = Delayed, all
	default:
		x.Earliest = c.earliestEver(r, all)
	}
	c.Add(x.Grants)
	return x
}

// earliestEver is the beginning of what was found in the window, or after it.
func (c *Calendar) earliestEver(r Request, found []Grant) int64 {
	if found == nil {
		r.Demand.Window.Until = math.MaxInt64
		if found, _ = c.Earliest(r.Demand, r.Preference); found == nil {
			return math.MaxInt64
		}
	}
	return found[0].Span.From
}

// part grants as much as there is at the beginning of the window, and the rest as early as
// possible in it.
func (c *Calendar) part(r Request, x *Decision) bool {
	first := r.Demand
	first.Window.Until = first.Window.From + first.Duration
	rest := r.Demand
	var grants []Grant
	if r.Demand.GPUs > 1 {
		for first.GPUs--; first.GPUs > 0; first.GPUs-- {
			if found, ok := c.Earliest(first, r.Preference); ok {
				grants, rest.GPUs = found, rest.GPUs-first.GPUs
				break
			}
		}
	} else if cores := c.mostCores(first); cores > 0 {
		first.Each = portion(r.Demand.Each, cores)
		if found, ok := c.Earliest(first, r.Preference); ok {
			grants, rest.Each = found, r.Demand.Each.minus(first.Each)
		}
	}
	if grants == nil {
		return false
	}
	c.Add(grants)
	later, ok := c.Earliest(rest, r.Preference)
	if !ok {
		c.Remove(grants)
		return false
	}
	c.Add(later)
	x.Outcome, x.Grants = Partial, append(grants, later...)
	return true
}

// portion is a part of an amount: memory goes with the cores, rounded up.
func portion(each Amount, cores int64) Amount {
	return Amount{cores, (each.MemoryMiB*cores + each.Cores - 1) / each.Cores}
}

// mostCores is the most cores, fewer than those of the demand, that a device has left for
// its first span, with their memory.
func (c *Calendar) mostCores(d Demand) (most int64) {
	for _, n := range c.nodes {
		for _, dev := range n.devices {
			if d.rank(dev.Model) < 0 {
				continue
			}
			left := dev.Capacity.minus(dev.used.Max(d.Window))
			cores := min(left.Cores, d.Each.Cores-1)
			if d.Each.MemoryMiB > 0 && left.MemoryMiB < portion(d.Each, max(cores, 0)).MemoryMiB {
				cores = min(cores, left.MemoryMiB*d.Each.Cores/d.Each.MemoryMiB)
			}
			most = max(most, cores)
		}
	}
	return most
}
