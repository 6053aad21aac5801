package serving

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/models"
	"weir/workspaces/shard"
)

// family is models that the worker computes, by what they differ in.
type family struct {
	modelType string
	task      models.ModelTask
	checks    []func(family, shard.Model) models.Text // in this order
	tensors   func(family, shard.Model) map[string][]int64

	bias    bool     // of decoders: queries, keys and values have a bias
	norm    bool     // of decoders: the queries and keys of each head are normalized
	experts *experts // of decoders: in the place of each feed-forward network
	filled  bool     // of text encoders: positions begin behind the number of the token that fills texts up
	stated  []string // entries of config.json whose absence means something else than null
	ignored []string // entries of config.json that change nothing
}

// experts are those of a layer, by names in files and config.json.
type experts struct {
	router, inner  string // what routes tokens to them, and where they are
	gate, up, down string
	size           string // entry of config.json
}

var decoderChecks = []func(family, shard.Model) models.Text{checkStated, checkOptions, checkRotation, checkDecoderSizes, checkTensors}

var expertChecks = slices.Concat(decoderChecks[:len(decoderChecks)-1], []func(family, shard.Model) models.Text{checkExperts, checkTensors})

var encoderChecks = []func(family, shard.Model) models.Text{checkOptions, checkEncoderSizes, checkTensors}

// families are by their architectures. The defaults of config.json are those of the classes
// BertConfig, LlamaConfig, MistralConfig, MixtralConfig, Qwen2Config, Qwen3Config, Qwen3MoeConfig,
// RobertaConfig, ViTConfig and XLMRobertaConfig of transformers.
var families = map[string]family{
	"LlamaForCausalLM": {modelType: "llama", task: models.TaskTextGeneration, checks: decoderChecks, tensors: decoderTensors},
	"MistralForCausalLM": {modelType: "mistral", task: models.TaskTextGeneration, checks: decoderChecks, tensors: decoderTensors,
		stated: []string{"num_key_value_heads", "sliding_window"}},
	"Qwen2ForCausalLM": {modelType: "qwen2", task: models.TaskTextGeneration, checks: decoderChecks, tensors: decoderTensors, bias: true,
		stated: []string{"num_key_value_heads"}, ignored: []string{"sliding_window"}},
	"Qwen3ForCausalLM": {modelType: "qwen3", task: models.TaskTextGeneration, checks: decoderChecks, tensors: decoderTensors, norm: true,
		stated: []string{"num_key_value_heads", "head_dim"}, ignored: []string{"sliding_window"}},
	"MixtralForCausalLM": {modelType: "mixtral", task: models.TaskTextGeneration, checks: expertChecks, tensors: decoderTensors,
		stated: []string{"num_key_value_heads", "num_experts_per_tok", "num_local_experts"}, ignored: []string{"router_jitter_noise"},
		experts: &experts{"block_sparse_moe.gate", "block_sparse_moe.experts", "w1", "w3", "w2", "intermediate_size"}},
	"Qwen3MoeForCausalLM": {modelType: "qwen3_moe", task: models.TaskTextGeneration, checks: expertChecks, tensors: decoderTensors, norm: true,
		stated:  []string{"num_key_value_heads", "head_dim", "num_experts_per_tok", "num_experts", "moe_intermediate_size", "norm_topk_prob"},
		ignored: []string{"sliding_window"},
		experts: &experts{"mlp.gate", "mlp.experts", "gate_proj", "up_proj", "down_proj", "moe_intermediate_size"}},
	"BertModel":    {modelType: "bert", task: models.TaskTextEmbedding, checks: encoderChecks, tensors: encoderTensors},
	"RobertaModel": {modelType: "roberta", task: models.TaskTextEmbedding, checks: encoderChecks, tensors: encoderTensors, filled: true},
	"XLMRobertaModel": {modelType: "xlm-roberta", task: models.TaskTextEmbedding, checks: encoderChecks, tensors: encoderTensors,
		filled: true},
	"ViTForImageClassification": {modelType: "vit", task: models.TaskImageClassification, tensors: visionTensors,
		checks: []func(family, shard.Model) models.Text{checkOptions, checkVisionSizes, checkTensors}},
}

// familyOf is the family of a model; why says why the worker computes none like it.
func familyOf(m shard.Model) (f family, why models.Text) {
	f, known := families[m.Facts.Architecture]
	switch {
	case !known:
		return f, models.Say("the architecture %s is not implemented; those that are: %s", m.Facts.Architecture,
			strings.Join(slices.Sorted(maps.Keys(families)), ", "))
	case m.Facts.Type != f.modelType && m.Facts.Type != "":
		return f, models.Say("model_type in config.json is %s, and for this architecture it is %s", m.Facts.Type, f.modelType)
	case has(m.Config, "auto_map"):
		return f, models.Say("%s in config.json names a program that comes with the model", "auto_map")
	}
	return f, models.Text{}
}

// TaskOf is what a model does that is not refused.
func TaskOf(m shard.Model) models.ModelTask { return families[m.Facts.Architecture].task }

// Results is how many numbers a model computes of a sequence: one for each token or class, or those of an
// embedding.
func Results(m shard.Model) int64 {
	switch TaskOf(m) {
	case models.TaskImageClassification:
		return int64(len(imageOf(m.Config).Labels))
	case models.TaskTextEmbedding:
		return m.Facts.Hidden
	default:
		return m.Facts.Vocabulary
	}
}

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

// addLayers adds the tensors of all layers of a stack.
func addLayers(needed map[string][]int64, m shard.Model, stack string, layer map[string][]int64) {
	for n := range min(sizeIn(m.Config, "num_hidden_layers"), maxNeeded) {
		for name, shape := range layer {
			needed[fmt.Sprintf("%s.%d.%s", stack, n, name)] = shape
		}
	}
}
