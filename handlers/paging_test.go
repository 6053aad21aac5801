package handlers

import (
	"slices"
	"testing"

	"weir/models"
)

// A list goes on after the item of a cursor, also if that was deleted, unless its place is not known.
func TestAfterDeletedItems(t *testing.T) {
	for _, c := range []struct {
		all  []int64
		last int64
		want []int64 // nil: refused
	}{
		{[]int64{1, 3, 5}, 0, []int64{1, 3, 5}}, {[]int64{1, 3, 5}, 3, []int64{5}}, {[]int64{1, 3, 5}, 4, []int64{5}}, {[]int64{1, 3, 5}, 6, []int64{}},
		{[]int64{5, 3, 1}, 3, []int64{1}}, {[]int64{5, 3, 1}, 4, []int64{3, 1}}, {[]int64{5, 3, 1}, 9, []int64{5, 3, 1}},
		{[]int64{3, 1, 5}, 1, []int64{5}}, {[]int64{3, 1, 5}, 4, nil}, {[]int64{}, 4, []int64{}},
	} {
		got, err := after(c.all, func(n int64) int64 { return n }, c.last)
		if c.want == nil {
			if models.KindOf(err) != models.KindInvalid {
				t.Errorf("%v after %d: %v, %v; want a refusal", c.all, c.last, got, err)
			}
		} else if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v after %d: %v, %v; want %v", c.all, c.last, got, err, c.want)
		}
	}
}
