package serving

import (
	"encoding/json"
	"math"
	"slices"

	"weir/models"
	"weir/workspaces/shard"
)

func notServed(why models.Text) error {
	return models.Conflict("This model cannot be served: %s.", why)
}

// checkStated refuses configurations whose defaults are other than those that the worker has.
func checkStated(f family, m shard.Model) models.Text {
	for _, name := range f.stated {
		if _, stated := m.Config[name]; !stated {
			return models.Say("config.json does not state %s", name)
		}
	}
	return models.Text{}
}

// has reports whether config.json states something.
func has(c shard.Config, name string) bool {
	text := string(c[name])
	return text != "" && text != "null"
}

// option is an entry of config.json with the values that are implemented.
type option struct {
	name    string
	neutral []string
}

// unsupported are entries of config.json that change what a model computes, with the values
// that change nothing.
var unsupported = []option{
	{"quantization_config", nil}, {"compression_config", nil}, {"sliding_window", nil}, {"kv_lora_rank", nil},
	{"attn_logit_softcapping", nil}, {"final_logit_softcapping", nil}, {"attention_chunk_size", nil}, {"no_rope_layers", nil},
	{"attention_bias", []string{"false"}}, {"mlp_bias", []string{"false"}}, {"use_qk_norm", []string{"false"}},
	{"attention_multiplier", []string{"1", "1.0"}}, {"embedding_multiplier", []string{"1", "1.0"}},
	{"residual_multiplier", []string{"1", "1.0"}}, {"logits_scaling", []string{"1", "1.0"}},
	{"partial_rotary_factor", []string{"1", "1.0"}}, {"is_encoder_decoder", []string{"false"}}, {"add_cross_attention", []string{"false"}},
	{"use_sliding_window", []string{"false"}}, {"use_mrope", []string{"false"}}, {"use_mask_token", []string{"false"}},
	{"qkv_bias", []string{"true"}}, {"decoder_sparse_step", []string{"1"}}, {"mlp_only_layers", []string{"[]"}}, {"router_jitter_noise", nil},
	{"is_decoder", []string{"false"}}, {"position_embedding_type", []string{`"absolute"`}},
}

// activations are the values of hidden_act that are implemented.
var activations = map[models.ModelTask][]string{models.TaskTextGeneration: {`"silu"`, `"swish"`},
	models.TaskImageClassification: {`"gelu"`}, models.TaskTextEmbedding: {`"gelu"`}}

// checkOptions refuses what is not implemented.
func checkOptions(f family, m shard.Model) models.Text {
	options := append(slices.Clone(unsupported), option{"hidden_act", activations[f.task]})
	for _, option := range options {
		known := slices.Contains(f.ignored, option.name) || slices.Contains(option.neutral, string(m.Config[option.name]))
		if has(m.Config, option.name) && !known {
			return models.Say("%s in config.json is %s, which is not implemented", option.name, valueOf(m.Config, option.name))
		}
	}
	var kinds []string
	if has(m.Config, "layer_types") && (json.Unmarshal(m.Config["layer_types"], &kinds) != nil ||
		slices.ContainsFunc(kinds, func(kind string) bool { return kind != "full_attention" })) {
		return models.Say("%s in config.json is %s, which is not implemented", "layer_types", valueOf(m.Config, "layer_types"))
	}
	if m.Facts.Experts > 0 && f.experts == nil {
		return models.Say("it has experts")
	}
	return models.Text{}
}

// valueOf is a value of config.json as people can read it.
func valueOf(c shard.Config, name string) string { return models.Excerpt(string(c[name])) }

// checkPositive refuses numbers that are stated and not positive.
func checkPositive(m shard.Model, names ...string) models.Text {
	for _, name := range names {
		var n float64
		if has(m.Config, name) && (json.Unmarshal(m.Config[name], &n) != nil || !positive(n)) {
			return models.Say("%s in config.json must be more than 0", name)
		}
	}
	return models.Text{}
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 0) }

// checkSizes refuses configurations that do not state these sizes.
func checkSizes(m shard.Model, names ...string) models.Text {
	for _, name := range names {
		if sizeIn(m.Config, name) == 0 {
			return models.Say("config.json does not state %s as a number from 1 to %d", name, int64(maxSize))
		}
	}
	return models.Text{}
}

// sizeIn is a size that config.json states; 0 if it is none.
func sizeIn(c shard.Config, name string) (n int64) {
	if json.Unmarshal(c[name], &n) != nil || n < 1 || n > maxSize {
		return 0
	}
	return n
}

// maxSize bounds the sizes of a model in config.json.
const maxSize = 10_000_000
