package serving

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/models"
	"weir/workspaces/shard"
)

// checkTensors refuses files that do not have exactly the tensors that config.json describes.
func checkTensors(f family, m shard.Model) models.Text {
	needed := f.tensors(f, m)
	for _, file := range m.Files {
		for _, t := range file.Tensors {
			shape, known := needed[t.Name]
			name := models.VisibleName(t.Name)
			switch {
			case f.isUnused(t.Name):
				continue
			case !known:
				return models.Say("the tensor %s is not known, so what it does is not implemented", name)
			case t.Type != "F32" && t.Type != "F16" && t.Type != "BF16":
				return models.Say("the tensor %s has the type %s; F32, F16 and BF16 are implemented", name, t.Type)
			case !slices.Equal(t.Shape, shape):
				return models.Say("the tensor %s has the shape %s, and by config.json it has %s", name, fmt.Sprint(t.Shape), fmt.Sprint(shape))
			}
			delete(needed, t.Name)
		}
	}
	if len(needed) > 0 {
		return models.Say("the tensor %s is missing", slices.Min(slices.Collect(maps.Keys(needed))))
	}
	return models.Text{}
}

// isUnused reports whether a tensor of a family is not computed with: what old files have and is computed
// instead, and of text encoders what they are trained with.
func (f family) isUnused(name string) bool {
	return strings.HasSuffix(name, ".self_attn.rotary_emb.inv_freq") || f.task == models.TaskTextEmbedding &&
		(name == "embeddings.position_ids" || name == "embeddings.token_type_ids" || strings.HasPrefix(name, "pooler.dense."))
}

// addLayers adds the tensors of all layers of a stack.
func addLayers(needed map[string][]int64, m shard.Model, stack string, layer map[string][]int64) {
	for n := range min(sizeIn(m.Config, "num_hidden_layers"), maxNeeded) {
		for name, shape := range layer {
			needed[fmt.Sprintf("%s.%d.%s", stack, n, name)] = shape
		}
	}
}

// maxNeeded bounds the layers whose tensors are looked for: what a model has at most.
const maxNeeded = 10_000

// addEncoderLayer adds the linear layers of a layer of an encoder, whose heads have a name of their own.
func addEncoderLayer(layer map[string][]int64, heads string, hidden, inner int64) {
	square := []int64{hidden, hidden}
	for name, shape := range map[string][]int64{heads + "query": square, heads + "key": square, heads + "value": square,
		"attention.output.dense": square, "intermediate.dense": {inner, hidden}, "output.dense": {hidden, inner}} {
		layer[name+".weight"], layer[name+".bias"] = shape, shape[:1]
	}
}

// addNorm adds the tensors of a norm.
func addNorm(to map[string][]int64, name string, size int64) {
	to[name+".weight"], to[name+".bias"] = []int64{size}, []int64{size}
}
