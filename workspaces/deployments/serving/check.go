package serving

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"

	"weir/models"
	"weir/workspaces/shard"
)

// Refuse returns the reason for which the worker does not serve a model as a conflict; nil if
// it serves it. The worker would compute other models than these wrongly.
func Refuse(folder fs.FS, m shard.Model) error {
	_, err := readGeneration(folder, m)
	return err
}

func notServed(why models.Text) error {
	return models.Conflict("This model cannot be served: %s.", why)
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

// checkSizes refuses configurations that do not state these sizes.
func checkSizes(m shard.Model, names ...string) models.Text {
	for _, name := range names {
		if sizeIn(m.Config, name) == 0 {
			return models.Say("config.json does not state %s as a number from 1 to %d", name, int64(maxSize))
		}
	}
	return models.Text{}
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

// maxSize bounds the sizes of a model in config.json.
const maxSize = 10_000_000

// isUnused reports whether a tensor of a family is not computed with: what old files have and is computed
// instead, and of text encoders what they are trained with.
func (f family) isUnused(name string) bool {
	return strings.HasSuffix(name, ".self_attn.rotary_emb.inv_freq") || f.task == models.TaskTextEmbedding &&
		(name == "embeddings.position_ids" || name == "embeddings.token_type_ids" || strings.HasPrefix(name, "pooler.dense."))
}

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

// maxNeeded bounds the layers whose tensors are looked for: what a model has at most.
const maxNeeded = 10_000
