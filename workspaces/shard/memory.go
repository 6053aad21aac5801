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

// kvBytes is the cache of keys and values of one layer.
func kvBytes(f models.ModelFacts, l Load) int64 {
	if slices.ContainsFunc(inOnePass, func(end string) bool { return strings.HasSuffix(f.Architecture, end) }) {
		return 0
	}
	values := product(2, f.KVHeads, f.HeadSize)
	if f.Latent > 0 {
		values = f.Latent
	}
	return product(values, l.Batch, l.Context, f.ValueBytes)
}

// activationBytes is the largest intermediate result of a pass over the whole context.
func activationBytes(f models.ModelFacts, l Load) int64 {
	attention := product(2, sum(f.Heads, f.KVHeads), f.HeadSize)
	perToken := product(sum(product(2, f.Hidden), max(attention, product(2, f.Intermediate))), f.ValueBytes)
	return sum(product(perToken, l.Batch, l.Context), product(l.Batch, f.Vocabulary, 4))
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
