package fleet

import (
	"math/rand"
	"testing"

	"pgregory.net/rapid"
)

// On machines whose CPU limits nobody, an outlook is the very measure that
// the policies use.
func TestOutlookIsTheMeasureOfThePolicies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var workload []Task
		for range rapid.IntRange(0, 6).Draw(t, "tasks") {
			workload = append(workload, Task{GPUs: rapid.IntRange(1, 3).Draw(t, "gpus"), GPUMilli: rapid.Int64Range(1, Whole).Draw(t, "milli")})
		}
		left := rapid.SliceOfN(rapid.Int32Range(0, Whole), 0, 5).Draw(t, "remaining")
		worth := NewOutlook(workload).Worth(left)

		f, err := New([]Node{{GPUs: len(left)}}, Weir, workload, rand.New(rand.NewSource(1)))
		if err != nil {
			t.Fatal(err)
		}
		weirs := f.prospects(workload)[0].worth(0, left) * float64(len(workload))
		if diff := float64(worth) - weirs; diff > 1e-6*weirs+1e-6 || diff < -1e-6*weirs-1e-6 {
			t.Fatalf("worth %d, to weir %f", worth, weirs)
		}
		typical := NewOutlook(Typical(workload)).Worth(left)
		if fgds := f.fragments(workload).models[0].of(0, left); typical != fgds {
			t.Fatalf("worth %d to typical tasks, to fgd %d", typical, fgds)
		}
	})
}

func TestTypical(t *testing.T) {
	often, rare := Task{GPUs: 1, GPUMilli: 500}, Task{GPUs: 8, GPUMilli: Whole}
	var workload []Task
	for range 95 {
		workload = append(workload, often)
	}
	for range 5 {
		workload = append(workload, rare)
	}
	if got := Typical(workload); len(got) != 95 || got[0] != often {
		t.Errorf("%d typical tasks", len(got))
	}
	if got := Typical(workload[1:]); len(got) != 99 {
		t.Errorf("%d typical tasks where the often ones are less than 95 percent", len(got))
	}
}
