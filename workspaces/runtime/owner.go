package runtime

import (
	"cmp"
	"fmt"
	"slices"

	"weir/models"
)

// Owner is what a runtime starts things for: one generation of one installation. A copy of
// its database that is restored from a backup is another generation, and another owner. The
// zero Owner is for runtimes of no installation, such as in tests.
type Owner struct {
	Installation string
	Generation   int64
}

// String is the mark of what the owner has started; empty of the zero Owner.
func (o Owner) String() string {
	if o == (Owner{}) {
		return ""
	}
	return fmt.Sprintf("%s.%d", o.Installation, o.Generation)
}

// Owns reports whether something with a mark is the owner's. What was started before there
// were marks is of the first generation.
func (o Owner) Owns(mark string) bool { return mark == o.String() || mark == "" && o.Generation <= 1 }

// First is the first generation of the installation.
func (o Owner) First() Owner { return Owner{o.Installation, 1} }

// CountForeign lists what was counted, by place and owner.
func CountForeign(count map[models.Foreign]int) (list []models.Foreign) {
	for f, n := range count {
		f.Workspaces = n
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b models.Foreign) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Owner, b.Owner))
	})
	return list
}
