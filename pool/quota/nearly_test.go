package quota_test

import (
	"testing"

	"weir/models"
	"weir/pool/quota"
)

func TestNearlyUsed(t *testing.T) {
	bound := models.Resources{GPUCores: 100, CPUMilli: 1000}
	for _, c := range []struct {
		before, after int64
		nearly        bool
	}{{0, 89, false}, {0, 90, true}, {89, 90, true}, {90, 91, false}, {95, 100, false}, {95, 50, false}, {0, 100, true}} {
		list := quota.NearlyUsed(models.Resources{GPUCores: c.before, MemoryMiB: 0}, models.Resources{GPUCores: c.after, MemoryMiB: 5}, bound)
		if (len(list) == 1) != c.nearly || c.nearly && (list[0].Name != "gpu_cores" || list[0].Value != c.after || list[0].Quota != 100) {
			t.Errorf("from %d to %d of 100: %+v", c.before, c.after, list)
		}
	}
}
