package shard

import (
	"encoding/json"
	"io/fs"

	"weir/models"
)

const (
	configName = "config.json"
	maxConfig  = 1 << 20 // bytes
)

// Config is the values of a config.json. Different families of models give the same thing
// different names, and some nest the configuration of their text model.
type Config map[string]json.RawMessage

// maxConfigValue is the most that a number of a configuration can be.
const maxConfigValue = 100_000_000

// readConfig reads config.json; without one, the configuration is empty.
func readConfig(folder fs.FS) (c Config, err error) {
	content, err := ReadSmall(folder, configName, maxConfig)
	if content == nil || err != nil {
		return nil, err
	}
	if json.Unmarshal(content, &c) != nil || c == nil {
		return nil, refuse(configName, models.Say("it is not a JSON object"))
	}
	return c, nil
}

// text returns a text; "" if there is none.
func (c Config) text(names ...string) (text string) {
	for _, name := range names {
		if json.Unmarshal(c[name], &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// number returns the first of these numbers that is there, or that of the text model; 0 if
// there is none.
func (c Config) number(names ...string) int64 {
	for _, name := range names {
		var n int64
		if json.Unmarshal(c[name], &n) == nil && n > 0 && n <= maxConfigValue {
			return n
		}
	}
	if nested := c.nested(); nested != nil {
		return nested.number(names...)
	}
	return 0
}

// nested is the configuration of the text model in that of one of several kinds of data.
func (c Config) nested() (inner Config) {
	if json.Unmarshal(c["text_config"], &inner) != nil {
		return nil
	}
	delete(inner, "text_config")
	return inner
}

// apply adds what the configuration says to facts.
func (c Config) apply(f *models.ModelFacts) {
	var architectures []string
	if json.Unmarshal(c["architectures"], &architectures) == nil && len(architectures) > 0 {
		f.Architecture = models.VisibleName(architectures[0])
	}
	f.Type = models.VisibleName(c.text("model_type"))
	f.Hidden = c.number("hidden_size", "n_embd", "d_model", "dim")
	f.Intermediate = c.number("intermediate_size", "n_inner", "ffn_dim", "d_ff", "moe_intermediate_size")
	if f.Intermediate == 0 {
		f.Intermediate = 4 * f.Hidden // as GPT-2 and BERT have it unless they say otherwise
	}
	f.Heads = c.number("num_attention_heads", "n_head", "n_heads", "num_heads")
	if f.KVHeads = c.number("num_key_value_heads", "num_kv_heads", "n_head_kv"); f.KVHeads == 0 || f.KVHeads > f.Heads {
		f.KVHeads = f.Heads
	}
	if f.HeadSize = c.number("head_dim", "d_kv"); f.HeadSize == 0 && f.Heads > 0 {
		f.HeadSize = f.Hidden / f.Heads
	}
	if rank := c.number("kv_lora_rank"); rank > 0 {
		f.Latent = rank + c.number("qk_rope_head_dim")
	}
	f.Vocabulary = c.number("vocab_size")
	f.MaxContext = c.number("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len")
	if image, patch := c.number("image_size"), c.number("patch_size"); f.MaxContext == 0 && image > 0 && patch > 0 {
		f.MaxContext = (image/patch)*(image/patch) + 1 // with the token whose result classifies the image
	}
	f.Experts = c.number("num_local_experts", "n_routed_experts", "num_experts")
	f.ExpertsUsed = min(c.number("num_experts_per_tok", "moe_topk"), f.Experts)
	f.ValueBytes = c.valueBytes()
	_ = json.Unmarshal(c["tie_word_embeddings"], &f.Tied)
}

// valueBytes is the size of a value that the model computes with. Weights can be smaller.
func (c Config) valueBytes() int64 {
	name := c.text("torch_dtype", "dtype")
	if nested := c.nested(); name == "" && nested != nil {
		name = nested.text("torch_dtype", "dtype")
	}
	switch name {
	case "float32":
		return 4
	case "float64":
		return 8
	default:
		return 2
	}
}
