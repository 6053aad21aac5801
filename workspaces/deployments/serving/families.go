package serving

import (
	"maps"
	"slices"
	"strings"

	"weir/models"
	"weir/workspaces/shard"
)

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

// Check returns why the worker cannot serve a model by what config.json and the headers of its
// files say; empty if it can.
func Check(m shard.Model) models.Text {
	f, why := familyOf(m)
	for i := 0; why.Empty() && i < len(f.checks); i++ {
		why = f.checks[i](f, m)
	}
	return why
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

// MaxContext is the most tokens of a sequence; 0 if it is not known.
func MaxContext(m shard.Model) int64 {
	if filler := families[m.Facts.Architecture].filler(m.Config); filler != nil {
		return m.Facts.MaxContext - *filler - 1
	}
	return m.Facts.MaxContext
}

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
