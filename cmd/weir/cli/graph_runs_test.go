package cli

import (
	"testing"

	"github.com/spf13/pflag"

	"weir/models"
)

// The time of a run on several CPUs is not more than was measured, unless it was known before.
func TestOnOneCPU(t *testing.T) {
	for _, c := range []struct {
		known, duration float64
		cpus            int64
		want            float64
	}{{0, 10, 4, 10}, {25, 10, 4, 25}, {5, 10, 4, 10}, {60, 10, 4, 40}, {60, 10, 1, 10}} {
		if got := onOneCPU(c.known, c.duration, c.cpus); got != c.want {
			t.Errorf("%+v: %g s", c, got)
		}
	}
}

// An operator that has waited with few CPUs left takes its share when there is more again.
func TestShareAfterAWait(t *testing.T) {
	p := operatorRun{OperatorRuns: &OperatorRuns{set: &pflag.FlagSet{}, memoryFor: 100}, share: 4}
	for _, c := range []struct{ milli, memory, want int64 }{{9000, 1000, 4}, {1999, 1000, 1}, {9000, 250, 2}, {900, 1000, 0}, {9000, 1000, 4}} {
		if p.cpus = p.left(models.Resources{CPUMilli: c.milli, MemoryMiB: c.memory}); p.cpus != c.want {
			t.Errorf("%+v: %d", c, p.cpus)
		}
	}
}
