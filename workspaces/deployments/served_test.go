package deployments

import (
	"testing"

	"weir/models"
)

// CPUs compute in float32, whatever type a model's files have; GPUs compute in the type of the files.
func TestProcessMemory(t *testing.T) {
	half := models.ModelFacts{Parameters: 1000, Bytes: 2000, ValueBytes: 2}
	full := models.ModelFacts{Parameters: 1000, Bytes: 4000, ValueBytes: 4}
	mixed := models.ModelFacts{Parameters: 1000, Bytes: 2500, ValueBytes: 2} // half of the results, 1.6 × of the weights
	for _, test := range []struct {
		name      string
		facts     models.ModelFacts
		simulated bool
		want      int64
	}{
		{"bfloat16 on a GPU", half, false, 700}, {"bfloat16 on CPUs", half, true, 1400},
		{"float32 on a GPU", full, false, 700}, {"float32 on CPUs", full, true, 700},
		{"both types on CPUs", mixed, true, 1200},
	} {
		part := models.ModelPart{Weights: 500, KVCache: 150, Activations: 50, Total: 700}
		if got := processMemory(test.facts, part, test.simulated); got != test.want {
			t.Errorf("%s: %d bytes; want %d", test.name, got, test.want)
		}
	}
}
