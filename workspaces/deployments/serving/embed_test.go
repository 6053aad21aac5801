package serving

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"weir/workspaces/shard"
)

// Texts that are computed at once fit together, those of the same length follow each other, and none is lost.
func TestBatches(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		most, width := 1+random.IntN(40), 1<<(4+random.IntN(20))
		texts := make([][]int32, 1+random.IntN(30))
		for i := range texts {
			texts[i] = make([]int32, 1+random.IntN(most))
			for j := range texts[i] {
				texts[i][j] = int32(i)
			}
		}
		frames, order := Model{Hidden: width}.batches(texts, most)
		at, n := 0, 0
		for _, f := range frames {
			tokens := 0
			for i, length := range f.Texts {
				text := order[n+i]
				if length != len(texts[text]) || i > 0 && length < f.Texts[i-1] || int32(binary.LittleEndian.Uint32(f.data[4*tokens:])) != int32(text) {
					t.Fatalf("text %d of %v in a frame of %v", text, texts, f.Texts)
				}
				tokens += length
			}
			if f.At != at || f.Tokens != tokens || len(f.data) != 4*tokens || tokens > most || len(f.Texts) > 1 && tokens > int(shard.ChunkTokens(int64(width))) {
				t.Fatalf("%d tokens at %d, want at most %d at %d: %+v", tokens, f.At, most, at, f.request)
			}
			at, n = at+tokens, n+len(f.Texts)
		}
		if slices.Sort(order); n != len(texts) || order[0] != 0 || order[n-1] != n-1 || len(slices.Compact(order)) != n {
			t.Fatalf("%d texts in the order %v, want %d", n, order, len(texts))
		}
	}
}
