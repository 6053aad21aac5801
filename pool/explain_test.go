package pool

import (
	"fmt"
	"testing"

	"weir/pool/placement"
)

// Whatever placement can answer has words of its own.
func TestEveryReasonAndCriterionHasWords(t *testing.T) {
	r, d := placement.Refusal{Needed: 2}, placement.Demand{GPUs: 2, Cores: 50, Model: "h100"}
	seen := map[string]string{"unknown reason": "an unknown reason"}
	for reason := placement.Invalid; reason <= placement.TooFewDevices; reason++ {
		words := describeReason(reason, r, d).String()
		if other, taken := seen[words]; taken {
			t.Errorf("%d is worded as %s: %q", reason, other, words)
		}
		seen[words] = fmt.Sprint(reason)
	}
	seen = map[string]string{}
	for c := placement.Order; c < placement.Score; c++ {
		words := describeDecider(placement.RunnerUp{LostBy: c, Margin: 3}).String()
		if other, taken := seen[words]; taken {
			t.Errorf("%d is worded as %s: %q", c, other, words)
		}
		seen[words] = fmt.Sprint(c)
	}
	seen = map[string]string{}
	for _, policy := range placement.Policies() {
		words := describeAim(policy).String()
		if other, taken := seen[words]; taken && policy != "weir" {
			t.Errorf("%s is worded as %s: %q", policy, other, words)
		}
		seen[words] = policy
	}
}

func TestExplainChoice(t *testing.T) {
	e := placement.Explanation{Policy: "weir", Nodes: 9, Devices: 40, LeftoverCores: 20,
		RunnerUp: placement.RunnerUp{Node: 2, LostBy: placement.Unlinked, Margin: 3}}
	want := "GPU 0 on alpha: lowest fragmentation of 40 GPUs on 9 machines; 20 cores remain there; " +
		"the next best option has 3 more device pairs without NVLink."
	if got := explainChoice("alpha", "GPU 0", e).String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	e = placement.Explanation{Policy: "best-fit", Nodes: 1, Devices: 4, LeftoverCores: 20}
	if got := explainChoice("alpha", "GPU 0", e).String(); got != "GPU 0 on alpha: best fit of 4 GPUs; 20 cores remain there." {
		t.Errorf("got %q", got)
	}
}
