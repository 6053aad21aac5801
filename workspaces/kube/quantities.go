package kube

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
)

func quantityOf(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }
func milli(n int64) resource.Quantity      { return *resource.NewMilliQuantity(n, resource.DecimalSI) }
func mebibytes(mib int64) resource.Quantity {
	return resource.MustParse(strconv.FormatInt(mib, 10) + "Mi")
}
