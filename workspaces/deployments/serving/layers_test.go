package serving

import (
	"os/exec"
	"testing"
)

// A long prompt is computed in pieces, with the same result.
func TestAttentionInPieces(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-B", "-c", `
import sys
sys.modules["torch"] = None
import numpy as np
import layers
random, xp = np.random.default_rng(1), layers.Numpy()
for heads, of_keys, at, n in ((4, 2, 0, 37), (4, 4, 11, 50), (2, 1, 5, 1), (6, 2, 3, 200)):
    q, k, v = (random.standard_normal((h, rows, 8), dtype=np.float32) for h, rows in ((heads, n), (of_keys, at + n), (of_keys, at + n)))
    layers.SCORES = 1 << 30
    whole = xp.attend(q, k, v, at)
    for layers.SCORES in (1, 300, 1000):
        pieces = xp.attend(q, k, v, at)
        assert pieces.shape == whole.shape and abs(pieces - whole).max() < 1e-6, (heads, at, n, layers.SCORES)
`).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
