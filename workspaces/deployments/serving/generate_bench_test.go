package serving

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkChoose measures the choice of a token among 128,256, the vocabulary of Llama 3.
func BenchmarkChoose(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	logits := make([]float32, 128_256)
	for i := range logits {
		logits[i] = float32(random.NormFloat64() * 3)
	}
	for _, in := range []Input{{}, {Logprobs: 1}, {Logprobs: 20}, {Temperature: 1, TopP: 1}, {Temperature: 1, TopP: 0.5}, {Temperature: 1, TopP: 0.95}, {Temperature: 2, TopP: 0.95}} {
		b.Run(fmt.Sprintf("temperature=%g,top_p=%g,logprobs=%d", in.Temperature, in.TopP, in.Logprobs), func(b *testing.B) {
			for b.Loop() {
				if _, err := choose(logits, in, random); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
