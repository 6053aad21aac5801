package queue

import (
	"cmp"
	"time"

	"weir/pool/placement"
)

// Request is one request that waits.
type Request struct {
	ID, Project, Member int64 // the ID is unique in a queue
	Priority            int   // 0..100, the project's; a higher one goes first
	Demand              placement.Demand
	// InUse and Quota are the GPU cores that the project uses now, and its
	// quota. Where requests of one project disagree, the higher use and the
	// lower quota count.
	InUse, Quota int64
	Since        time.Time // waiting since
}

// Criterion is what puts a request behind its predecessor.
type Criterion int

const (
	// First is for the request that has no predecessor.
	First Criterion = iota
	// Priority: the predecessor's is higher.
	Priority
	// Overdue: the predecessor is overdue, this one is not.
	Overdue
	// Fairness: the predecessor's project uses a smaller part of its quota,
	// counting the requests before both as granted.
	Fairness
	// Age: the predecessor was requested earlier or, at the same instant, has the
	// smaller ID.
	Age
	criterionCount
)

var criterionNames = [criterionCount]string{"first", "priority", "overdue", "fairness", "age"}

// String is the criterion's stable name, for logs and programs.
func (c Criterion) String() string {
	if c < 0 || c >= criterionCount {
		return "unknown"
	}
	return criterionNames[c]
}

// Ranked is a request with its place in the order.
type Ranked struct {
	Request
	Position int       // from 1
	Behind   Criterion // why it is not before the request at Position-1
}

func byAge(a, b *Request) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
}
