package shard

import (
	"slices"
	"strconv"

	"weir/models"
)

// MaxItems is the most items that are planned one by one.
const MaxItems = 1024

// tera is the scale of TFLOP/s, and giga that of GB/s.
const (
	tera = 1e12
	giga = 1e9
)

// piece is what an item needs, how people call its first and its last layer, and which these are.
type piece struct {
	name, last  string
	from, until int
	weights, kv int64
}

// work is a model as items to divide, and what every part has beside its items.
type work struct {
	items                  []Item
	pieces                 []piece
	weights, kv, activated int64 // bytes of every part
	flops                  float64
}

// workload is what a load makes a model do.
type workload struct {
	models.ModelFacts
	Load
	models.ModelMemory
}

// tokens are those of a pass.
func (w workload) tokens() float64 { return float64(w.Load.Batch) * float64(w.Load.Context) }

// passed is the bytes that go from one part to the next in a pass.
func (w workload) passed() int64 {
	return product(w.Hidden, w.Load.Batch, w.Load.Context, w.ValueBytes)
}

// expertShare is the share of a layer's experts that a token passes.
func (w workload) expertShare() float64 {
	if w.Experts == 0 || w.ExpertsUsed == 0 {
		return 1
	}
	return float64(w.ExpertsUsed) / float64(w.Experts)
}

// flops are the operations of a pass through a layer: for everything but experts, and for
// these.
func (w workload) layerFLOPs(l models.ModelLayer) (shared, experts float64) {
	switch l.Kind {
	case models.LayerInput:
		return 0, 0
	case models.LayerInner:
		shared = 2 * float64(w.Load.Context) * float64(product(w.Heads, w.HeadSize))
	}
	shared += 2 * float64(l.MatrixParameters)
	return shared * w.tokens(), 2 * float64(l.ExpertParameters) * w.expertShare() * w.tokens()
}

// modelFLOPs are those of all layers.
func (w workload) modelFLOPs() (shared, experts float64) {
	for _, l := range w.Layers {
		s, e := w.layerFLOPs(l)
		shared, experts = shared+s, experts+e
	}
	return shared, experts
}

// byLayers makes an item of each layer. Embeddings that the output uses, too, count there
// again: the last part needs a copy.
func (w workload) byLayers() work {
	v := work{activated: w.Activations}
	for i, l := range w.Layers {
		shared, experts := w.layerFLOPs(l)
		p, item := piece{name: l.Name, last: l.Name, from: i, until: i + 1, weights: l.Bytes}, Item{FLOPs: shared + experts}
		if l.Kind == models.LayerInner && !w.Partial {
			p.kv = kvBytes(w.ModelFacts, w.Load)
		}
		if l.Kind == models.LayerOutput && w.Tied && w.Layers[0].Kind == models.LayerInput {
			p.weights += w.Layers[0].Bytes
			item.FLOPs += 2 * float64(w.Layers[0].MatrixParameters) * w.tokens()
		}
		if i > 0 {
			item.Received = w.passed()
		}
		item.Bytes = sum(p.weights, p.kv)
		v.items, v.pieces = append(v.items, item), append(v.pieces, p)
	}
	return v
}

// joined is the work without the cuts before other layers than those named.
func (v work) joined(cuts []string) work {
	if len(cuts) == 0 {
		return v
	}
	all := v
	v.items, v.pieces = nil, nil
	for i, p := range all.pieces {
		if i == 0 || slices.Contains(cuts, p.name) {
			v.items, v.pieces = append(v.items, all.items[i]), append(v.pieces, p)
			continue
		}
		item, last := &v.items[len(v.items)-1], &v.pieces[len(v.pieces)-1]
		item.Bytes, item.FLOPs = sum(item.Bytes, all.items[i].Bytes), item.FLOPs+all.items[i].FLOPs
		last.weights, last.kv, last.last, last.until = sum(last.weights, p.weights), sum(last.kv, p.kv), p.last, p.until
	}
	return v
}

// equal makes n equal items of weights, cache and operations. In each layer, a part
// receives the results of the others twice: after attention and after the feed-forward
// network.
func (w workload) equal(n, weights, kv int64, flops float64) (v work) {
	each := func(total int64) int64 { return (total + n - 1) / n }
	received := product(2, layerCount(w.ModelFacts), w.passed())
	for i := range n {
		name := strconv.FormatInt(i, 10)
		p := piece{name, name, int(i), int(i) + 1, each(weights), each(kv)}
		v.pieces = append(v.pieces, p)
		v.items = append(v.items, Item{Bytes: sum(p.weights, p.kv), FLOPs: flops / float64(n), Received: received})
	}
	v.activated = w.Activations
	return v
}

// byHeads divides attention heads, in groups that share keys and values, and with them all
// matrices. Vectors are on every part, and so is a compressed cache.
func (w workload) byHeads() work {
	matrices := int64(0)
	for _, l := range w.Layers {
		matrices += l.MatrixBytes + l.ExpertBytes
	}
	kv := w.KVCache
	if w.Latent > 0 {
		kv = 0
	}
	shared, experts := w.modelFLOPs()
	v := w.equal(w.KVHeads, matrices, kv, shared+experts)
	v.weights, v.kv = w.Bytes-matrices, w.KVCache-kv
	return v
}

// byExperts divides the experts; everything else is on every part.
func (w workload) byExperts() work {
	bytes := int64(0)
	for _, l := range w.Layers {
		bytes += l.ExpertBytes
	}
	shared, experts := w.modelFLOPs()
	v := w.equal(w.Experts, bytes, 0, experts)
	v.weights, v.kv, v.flops = w.Bytes-bytes, w.KVCache, shared
	return v
}

// fixed is the memory that every part needs beside its items.
func (v work) fixed() int64 { return sum(v.weights, v.kv, v.activated) }

// targets are devices for the items.
func (v work) targets(devices []models.ModelDevice) (list []Target) {
	for _, d := range devices {
		list = append(list, Target{Memory: usable(d.MemoryBytes) - v.fixed(), Speed: d.TFLOPS * tera, Link: d.LinkGBps * giga, Fixed: v.flops})
	}
	return list
}

// parts are the stages with what they need.
func (v work) parts(stages []Stage, devices []models.ModelDevice) (list []models.ModelPart) {
	targets := v.targets(devices)
	for _, s := range stages {
		first, last := v.pieces[s.From], v.pieces[s.Until-1]
		p := models.ModelPart{Device: devices[s.Target], From: first.from, Until: last.until, First: first.name, Last: last.last,
			Weights: v.weights, KVCache: v.kv, Activations: v.activated, Seconds: s.Time(v.items, targets)}
		for _, one := range v.pieces[s.From:s.Until] {
			p.Weights, p.KVCache = sum(p.Weights, one.weights), sum(p.KVCache, one.kv)
		}
		p.Total = sum(p.Weights, p.KVCache, p.Activations)
		list = append(list, p)
	}
	return list
}
