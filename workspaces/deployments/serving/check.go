package serving

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

	"weir/models"
	"weir/workspaces/shard"
)

// Refuse returns the reason for which the worker does not serve a model as a conflict; nil if
// it serves it. The worker would compute other models than these wrongly.
func Refuse(folder fs.FS, m shard.Model) error {
	if why := Check(m); !why.Empty() {
		return models.Conflict("This model cannot be served: %s.", why)
	}
	_, err := readGeneration(folder, m)
	return err
}

// Check returns why the worker cannot serve a model by what config.json and the headers of its
// files say; empty if it can.
func Check(m shard.Model) models.Text {
	for _, check := range []func(shard.Model) models.Text{checkFamily, checkOptions, checkRotation, checkSizes, checkTensors} {
		if why := check(m); !why.Empty() {
			return why
		}
	}
	return models.Text{}
}

// checkFamily refuses other architectures, and models with a program of their own.
func checkFamily(m shard.Model) models.Text {
	f := m.Facts
	switch {
	case f.Architecture != "LlamaForCausalLM":
		return models.Say("only the architecture LlamaForCausalLM is implemented, and this one is %s", f.Architecture)
	case f.Type != "llama" && f.Type != "":
		return models.Say("model_type in config.json is %s; only llama is implemented", f.Type)
	case has(m.Config, "auto_map"):
		return models.Say("%s in config.json names a program that comes with the model", "auto_map")
	}
	return models.Text{}
}

// has reports whether config.json states something.
func has(c shard.Config, name string) bool {
	text := string(c[name])
	return text != "" && text != "null"
}

// unsupported are entries of config.json that change what a model computes, with the values
// that change nothing.
var unsupported = []struct {
	name    string
	neutral []string
}{
	{"quantization_config", nil}, {"compression_config", nil}, {"sliding_window", nil}, {"kv_lora_rank", nil},
	{"attn_logit_softcapping", nil}, {"final_logit_softcapping", nil}, {"attention_chunk_size", nil}, {"no_rope_layers", nil},
	{"attention_bias", []string{"false"}}, {"mlp_bias", []string{"false"}}, {"use_qk_norm", []string{"false"}},
	{"attention_multiplier", []string{"1", "1.0"}}, {"embedding_multiplier", []string{"1", "1.0"}},
	{"residual_multiplier", []string{"1", "1.0"}}, {"logits_scaling", []string{"1", "1.0"}},
	{"partial_rotary_factor", []string{"1", "1.0"}}, {"is_encoder_decoder", []string{"false"}}, {"add_cross_attention", []string{"false"}},
	{"hidden_act", []string{`"silu"`, `"swish"`}},
}

// checkOptions refuses what is not implemented.
func checkOptions(m shard.Model) models.Text {
	for _, option := range unsupported {
		if has(m.Config, option.name) && !slices.Contains(option.neutral, string(m.Config[option.name])) {
			return models.Say("%s in config.json is %s, which is not implemented", option.name, valueOf(m.Config, option.name))
		}
	}
	var kinds []string
	if has(m.Config, "layer_types") && (json.Unmarshal(m.Config["layer_types"], &kinds) != nil ||
		slices.ContainsFunc(kinds, func(kind string) bool { return kind != "full_attention" })) {
		return models.Say("%s in config.json is %s, which is not implemented", "layer_types", valueOf(m.Config, "layer_types"))
	}
	if m.Facts.Experts > 0 {
		return models.Say("it has experts")
	}
	return models.Text{}
}

// valueOf is a value of config.json as people can read it.
func valueOf(c shard.Config, name string) string { return models.Excerpt(string(c[name])) }

// checkRotation refuses other rotary embeddings than the plain one.
func checkRotation(m shard.Model) models.Text {
	for _, name := range []string{"rope_scaling", "rope_parameters"} {
		if !has(m.Config, name) {
			continue
		}
		var rope struct {
			Kind    string   `json:"rope_type"`
			Old     string   `json:"type"`
			Theta   *float64 `json:"rope_theta"`
			Partial *float64 `json:"partial_rotary_factor"`
		}
		bad := json.Unmarshal(m.Config[name], &rope) != nil
		for _, kind := range []string{rope.Kind, rope.Old} {
			bad = bad || kind != "" && kind != "default"
		}
		bad = bad || rope.Partial != nil && *rope.Partial != 1
		if bad || name == "rope_scaling" && rope.Kind == "" && rope.Old == "" {
			return models.Say("%s in config.json is %s, which is not implemented", name, valueOf(m.Config, name))
		}
		if rope.Theta != nil && !positive(*rope.Theta) {
			return models.Say("%s in config.json must be more than 0", "rope_theta")
		}
	}
	for _, name := range []string{"rope_theta", "rms_norm_eps"} {
		var n float64
		if has(m.Config, name) && (json.Unmarshal(m.Config[name], &n) != nil || !positive(n)) {
			return models.Say("%s in config.json must be more than 0", name)
		}
	}
	return models.Text{}
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 0) }

// checkSizes refuses numbers that do not fit each other.
func checkSizes(m shard.Model) models.Text {
	for _, name := range []string{"hidden_size", "num_attention_heads", "vocab_size", "num_hidden_layers", "intermediate_size"} {
		var n int64
		if json.Unmarshal(m.Config[name], &n) != nil || n < 1 || n > maxSize {
			return models.Say("config.json does not state %s as a number from 1 to %d", name, int64(maxSize))
		}
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

// maxSize bounds the sizes of a model in config.json.
const maxSize = 10_000_000

// ignored ends the names of tensors that old files have and that are computed instead.
const ignored = ".self_attn.rotary_emb.inv_freq"

// checkTensors refuses files that do not have exactly the tensors that config.json describes.
func checkTensors(m shard.Model) models.Text {
	needed := tensorsOf(m)
	for _, file := range m.Files {
		for _, t := range file.Tensors {
			shape, known := needed[t.Name]
			name := models.VisibleName(t.Name)
			switch {
			case strings.HasSuffix(t.Name, ignored):
				continue
			case t.Name == "lm_head.weight" && m.Facts.Tied:
				return models.Say("tie_word_embeddings in config.json is true, and the files have %s, too", name)
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
	missing := ""
	for name := range needed {
		if missing == "" || name < missing {
			missing = name
		}
	}
	if missing != "" {
		return models.Say("the tensor %s is missing", missing)
	}
	return models.Text{}
}

// maxNeeded bounds the layers whose tensors are looked for: what a model has at most.
const maxNeeded = 10_000

// tensorsOf are the shapes of the tensors that the worker computes with, by their names.
func tensorsOf(m shard.Model) map[string][]int64 {
	f := m.Facts
	layers := int64(0)
	_ = json.Unmarshal(m.Config["num_hidden_layers"], &layers) // checkSizes has read it
	needed := map[string][]int64{"model.embed_tokens.weight": {f.Vocabulary, f.Hidden}, "model.norm.weight": {f.Hidden}}
	if !f.Tied {
		needed["lm_head.weight"] = []int64{f.Vocabulary, f.Hidden}
	}
	q, kv := f.Heads*f.HeadSize, f.KVHeads*f.HeadSize
	for layer := range min(layers, maxNeeded) {
		at := fmt.Sprintf("model.layers.%d.", layer)
		for name, shape := range map[string][]int64{"input_layernorm": {f.Hidden}, "post_attention_layernorm": {f.Hidden},
			"self_attn.q_proj": {q, f.Hidden}, "self_attn.k_proj": {kv, f.Hidden}, "self_attn.v_proj": {kv, f.Hidden},
			"self_attn.o_proj": {f.Hidden, q}, "mlp.gate_proj": {f.Intermediate, f.Hidden}, "mlp.up_proj": {f.Intermediate, f.Hidden},
			"mlp.down_proj": {f.Hidden, f.Intermediate}} {
			needed[at+name+".weight"] = shape
		}
	}
	return needed
}
