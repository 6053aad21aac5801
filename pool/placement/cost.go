package placement

// Criterion names what a policy weighs; a smaller value is better.
type Criterion int

const (
	// Order decides between equals: the lower node id.
	Order Criterion = iota
	// SplitsIdle counts idle devices of which only a fraction is taken; one
	// that has one holder counts twice, because its remainder is lost to everybody.
	SplitsIdle
	// NewToProject counts devices that hold no share of the project yet.
	NewToProject
	// Fragmentation is how much free GPU, in thousandths of one, the demands to
	// come lose beyond what the demand itself uses.
	Fragmentation
	// Unlinked counts the pairs of chosen devices without NVLink.
	Unlinked
	// DeviceLoad is the GPU cores in use on the chosen devices.
	DeviceLoad
	// MachineLoad is the GPU cores in use on all devices of the machine, in percent.
	MachineLoad
	// LeftoverCores is the GPU cores that stay free on the chosen devices.
	LeftoverCores
	// LeftoverMemory is the memory, in MiB, that stays free there.
	LeftoverMemory
	// Score is that of a policy made by [Scored].
	Score
)

// cost is what a placement costs by the criteria of a policy, the weightiest
// in the highest bits; less is better.
type cost uint64

// unfit is the cost of a node that cannot take the demand.
const unfit = ^cost(0)

// field is the place of a criterion in a cost: an amount in units, plus an
// offset, that fills its bits at most.
type field struct {
	criterion Criterion
	bits      uint
	unit      int64
	offset    int64
}

// put adds a criterion's amount below those that are in the cost already.
func (c cost) put(f field, amount int64) cost {
	most := int64(1)<<f.bits - 1
	return c<<f.bits | cost(min(max(amount/f.unit+f.offset, 0), most))
}

// differs is the first criterion on which two costs differ, and by how much.
func differs(fields []field, a, b cost) (Criterion, int64) {
	shift := uint(0)
	for _, f := range fields {
		shift += f.bits
	}
	for _, f := range fields {
		shift -= f.bits
		mask := cost(1)<<f.bits - 1
		if x, y := a>>shift&mask, b>>shift&mask; x != y {
			return f.criterion, int64(y-x) * f.unit
		}
	}
	return Order, 0
}
