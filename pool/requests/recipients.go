package requests

import (
	"slices"
)

func except(ids []int64, but int64) []int64 {
	return slices.DeleteFunc(ids, func(id int64) bool { return id == but })
}
