package shard

import (
	"math"
	"math/bits"
	"slices"
	"strings"

	"weir/models"
)

// Load is what a model is used for at once.
type Load struct {
	Batch   int64 // sequences
	Context int64 // tokens of a sequence
}

// MaxBatch and MaxContext are the largest loads.
const (
	MaxBatch   = 65_536
	MaxContext = 100_000_000
)

// enough is more bytes than any machine has, where sums and products end.
const enough = math.MaxInt64 / 4

// product multiplies what is not negative, up to enough.
func product(factors ...int64) int64 {
	p := uint64(1)
	for _, f := range factors {
		high, low := bits.Mul64(p, uint64(f))
		if p = low; high > 0 || low > enough {
			p = enough
		}
	}
	return int64(p)
}

// sum adds what is not negative, up to enough.
func sum(terms ...int64) (s int64) {
	for _, t := range terms {
		s = min(s+min(t, enough), enough)
	}
	return s
}

// inOnePass are ends of architectures that compute their result in one pass, so that they need no
// cache.
var inOnePass = []string{"ForImageClassification", "ForAudioClassification", "ForSequenceClassification", "ForTokenClassification",
	"ForQuestionAnswering", "ForMaskedLM", "BertModel", "RobertaModel"}

// isInOnePass reports whether a model computes its result in one pass.
func isInOnePass(f models.ModelFacts) bool {
	return slices.ContainsFunc(inOnePass, func(end string) bool { return strings.HasSuffix(f.Architecture, end) })
}

// kvBytes is the cache of keys and values of one layer.
func kvBytes(f models.ModelFacts, l Load) int64 {
	if isInOnePass(f) {
		return 0
	}
	values := product(2, f.KVHeads, f.HeadSize)
	if f.Latent > 0 {
		values = f.Latent
	}
	return product(values, l.Batch, l.Context, f.ValueBytes)
}

// chunkBytes bounds the hidden states, of 4 bytes, that pass through a model that has a cache at once.
const chunkBytes = 16 << 20

// ChunkTokens is the most tokens of a sequence that a model with a hidden size computes at once.
func ChunkTokens(hidden int64) int64 { return max(chunkBytes/4/max(hidden, 1), 1) }

// activationBytes is the largest intermediate result. What computes in one pass has that of all sequences. Of
// others, each has the hidden states of a chunk, and one at a time attends to its context, or is in the
// feed-forward network with its chunk.
func activationBytes(f models.ModelFacts, l Load) int64 {
	states, sequences, chunk := product(l.Batch, l.Context), l.Batch, l.Context
	if !isInOnePass(f) {
		sequences, chunk = 1, min(l.Context, ChunkTokens(f.Hidden))
		states = product(l.Batch, chunk)
	}
	attention := product(2, sum(f.Heads, f.KVHeads), f.HeadSize, sequences, l.Context)
	values := sum(product(2, f.Hidden, states), max(attention, product(2, f.Intermediate, sequences, chunk)))
	return sum(product(values, f.ValueBytes), product(l.Batch, f.Vocabulary, 4))
}

// layerCount is the number of layers that attend.
func layerCount(f models.ModelFacts) (n int64) {
	for _, l := range f.Layers {
		if l.Kind == models.LayerInner {
			n++
		}
	}
	return n
}

// Memory is what a model needs on one device. See the formulas of the package.
func Memory(f models.ModelFacts, l Load) models.ModelMemory {
	m := models.ModelMemory{Batch: l.Batch, Context: l.Context, Weights: f.Bytes, Partial: f.Hidden == 0 || f.Heads == 0}
	if !m.Partial {
		m.KVCache, m.Activations = product(layerCount(f), kvBytes(f, l)), activationBytes(f, l)
	}
	m.Total = sum(m.Weights, m.KVCache, m.Activations)
	return m
}

// MarginPercent is the share of a device's memory that is kept free, for the program that
// serves the model and for memory that is allocated in pieces.
const MarginPercent = 10

// usable is the memory of a device without the margin.
func usable(bytes int64) int64 { return bytes / 100 * (100 - MarginPercent) }
