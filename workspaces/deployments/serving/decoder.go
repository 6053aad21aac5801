package serving

import (
	"encoding/json"
	"fmt"
	"slices"

	"weir/models"
	"weir/workspaces/shard"
)

// decoderTensors are the tensors of a decoder.
func decoderTensors(f family, m shard.Model) map[string][]int64 {
	v := m.Facts
	needed := map[string][]int64{"model.embed_tokens.weight": {v.Vocabulary, v.Hidden}, "model.norm.weight": {v.Hidden}}
	if !v.Tied || hasTensor(m, "lm_head.weight") { // some files of tied models have a copy, which is not used
		needed["lm_head.weight"] = []int64{v.Vocabulary, v.Hidden}
	}
	q, kv := v.Heads*v.HeadSize, v.KVHeads*v.HeadSize
	layer := map[string][]int64{"input_layernorm.weight": {v.Hidden}, "post_attention_layernorm.weight": {v.Hidden},
		"self_attn.q_proj.weight": {q, v.Hidden}, "self_attn.k_proj.weight": {kv, v.Hidden}, "self_attn.v_proj.weight": {kv, v.Hidden},
		"self_attn.o_proj.weight": {v.Hidden, q}}
	if e := f.experts; e != nil {
		layer[e.router+".weight"] = []int64{v.Experts, v.Hidden}
		for n := range v.Experts {
			addFeedForward(layer, fmt.Sprintf("%s.%d.", e.inner, n), e.gate, e.up, e.down, sizeIn(m.Config, e.size), v.Hidden)
		}
	} else {
		addFeedForward(layer, "mlp.", "gate_proj", "up_proj", "down_proj", v.Intermediate, v.Hidden)
	}
	if f.bias {
		layer["self_attn.q_proj.bias"], layer["self_attn.k_proj.bias"], layer["self_attn.v_proj.bias"] = []int64{q}, []int64{kv}, []int64{kv}
	}
	if f.norm {
		layer["self_attn.q_norm.weight"], layer["self_attn.k_norm.weight"] = []int64{v.HeadSize}, []int64{v.HeadSize}
	}
	addLayers(needed, m, "model.layers", layer)
	return needed
}

// addFeedForward adds the matrices of a network of two linear layers with a gate.
func addFeedForward(layer map[string][]int64, at, gate, up, down string, inner, hidden int64) {
	layer[at+gate+".weight"], layer[at+up+".weight"] = []int64{inner, hidden}, []int64{inner, hidden}
	layer[at+down+".weight"] = []int64{hidden, inner}
}

func hasTensor(m shard.Model, name string) bool {
	return slices.ContainsFunc(m.Files, func(f shard.File) bool {
		return slices.ContainsFunc(f.Tensors, func(t shard.Tensor) bool { return t.Name == name })
	})
}

// checkRotation refuses other rotary embeddings than the plain one and that of Llama 3.1.
func checkRotation(_ family, m shard.Model) models.Text {
	if has(m.Config, "rope_scaling") && has(m.Config, "rope_parameters") {
		return models.Say("config.json states both %s and %s", "rope_scaling", "rope_parameters")
	}
	for _, name := range []string{"rope_scaling", "rope_parameters"} {
		if !has(m.Config, name) {
			continue
		}
		var rope struct {
			Kind    string   `json:"rope_type"`
			Old     string   `json:"type"`
			Theta   *float64 `json:"rope_theta"`
			Partial *float64 `json:"partial_rotary_factor"`
			llama3
		}
		bad := json.Unmarshal(m.Config[name], &rope) != nil
		for _, kind := range []string{rope.Kind, rope.Old} {
			bad = bad || kind != "" && kind != "default" && (kind != "llama3" || !rope.valid())
		}
		bad = bad || rope.Partial != nil && *rope.Partial != 1
		if bad || name == "rope_scaling" && rope.Kind == "" && rope.Old == "" {
			return models.Say("%s in config.json is %s, which is not implemented", name, valueOf(m.Config, name))
		}
		if rope.Theta != nil && !positive(*rope.Theta) {
			return models.Say("%s in config.json must be more than 0", "rope_theta")
		}
	}
	return checkPositive(m, "rope_theta", "rms_norm_eps")
}

// llama3 is how rotary embeddings are made for longer texts than those of the first training, as
// Llama 3.1 has it.
type llama3 struct {
	Factor float64 `json:"factor"`
	Low    float64 `json:"low_freq_factor"`
	High   float64 `json:"high_freq_factor"`
	First  float64 `json:"original_max_position_embeddings"`
}

func (l llama3) valid() bool {
	return positive(l.Factor) && positive(l.Low) && positive(l.High) && positive(l.First) && l.Low < l.High
}

// checkDecoderSizes refuses numbers that do not fit each other.
func checkDecoderSizes(_ family, m shard.Model) models.Text {
	if why := checkSizes(m, "hidden_size", "num_attention_heads", "vocab_size", "num_hidden_layers", "intermediate_size"); !why.Empty() {
		return why
	}
	f := m.Facts
	var kv int64
	if has(m.Config, "num_key_value_heads") && (json.Unmarshal(m.Config["num_key_value_heads"], &kv) != nil || kv < 1 || f.Heads%kv != 0) {
		return models.Say("num_key_value_heads in config.json is %s, which does not divide the %d attention heads",
			valueOf(m.Config, "num_key_value_heads"), f.Heads)
	}
	if !has(m.Config, "head_dim") && f.Hidden%f.Heads != 0 {
		return models.Say("%d attention heads do not divide the hidden size of %d", f.Heads, f.Hidden)
	}
	if f.HeadSize < 1 || f.HeadSize%2 != 0 {
		return models.Say("the size of an attention head is %d; rotary embeddings need an even one", f.HeadSize)
	}
	return models.Text{}
}

// maxExperts bounds the experts of a layer: each has three tensors.
const maxExperts = 1024

// checkExperts refuses numbers of experts that do not fit each other.
func checkExperts(f family, m shard.Model) models.Text {
	if why := checkSizes(m, "num_experts_per_tok", f.experts.size); !why.Empty() {
		return why
	}
	n, used := m.Facts.Experts, sizeIn(m.Config, "num_experts_per_tok")
	layers, tensors := sizeIn(m.Config, "num_hidden_layers"), int64(0)
	for _, file := range m.Files {
		tensors += int64(len(file.Tensors))
	}
	switch {
	case n < 2 || n > maxExperts || n > m.Facts.Hidden: // what is routed is sent beside the hidden values
		return models.Say("it has %d experts; from 2 to %d are implemented, and at most as many as the hidden size of %d",
			n, int64(maxExperts), m.Facts.Hidden)
	case layers*n > tensors:
		return models.Say("it has %d tensors, which are too few for %d layers with %d experts", tensors, layers, n)
	case used > n:
		return models.Say("num_experts_per_tok in config.json is %d, and there are %d experts", used, n)
	}
	return models.Text{}
}
