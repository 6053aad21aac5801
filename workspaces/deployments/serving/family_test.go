package serving

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"weir/models"
)

// of is a model of another family than Llama: entries of config.json, with those of its tensors.
func of(t *testing.T, entries map[string]string, change func(map[string]tensor)) fstest.MapFS {
	t.Helper()
	config := llamaConfig
	for name, value := range entries {
		config = withIn(t, config, name, value)
	}
	return llama(t, config, change)
}

func addBias(list map[string]tensor) {
	for layer := range 2 {
		at := fmt.Sprintf("model.layers.%d.self_attn.", layer)
		list[at+"q_proj.bias"], list[at+"k_proj.bias"], list[at+"v_proj.bias"] = tensor{"BF16", []int64{8}}, tensor{"BF16", []int64{4}}, tensor{"BF16", []int64{4}}
	}
}

func addHeadNorm(list map[string]tensor) {
	for layer := range 2 {
		at := fmt.Sprintf("model.layers.%d.self_attn.", layer)
		list[at+"q_norm.weight"], list[at+"k_norm.weight"] = tensor{"BF16", []int64{2}}, tensor{"BF16", []int64{2}}
	}
}

// addExperts puts three experts into the place of each feed-forward network, with names of a family.
func addExperts(router, inner string, matrices ...string) func(map[string]tensor) {
	return func(list map[string]tensor) {
		for layer := range 2 {
			at := fmt.Sprintf("model.layers.%d.", layer)
			list[at+router+".weight"] = tensor{"BF16", []int64{3, 8}}
			for _, name := range []string{"gate_proj", "up_proj", "down_proj"} {
				delete(list, at+"mlp."+name+".weight")
			}
			for n, name := range matrices {
				shape := []int64{6, 8}
				if n == 2 {
					shape = []int64{8, 6}
				}
				for expert := range 3 {
					list[fmt.Sprintf("%s%s.%d.%s.weight", at, inner, expert, name)] = tensor{"BF16", shape}
				}
			}
		}
	}
}

// The entries are those of Mixtral 8x7B and Qwen3-30B-A3B.
func TestFamiliesWithExperts(t *testing.T) {
	mixtral := map[string]string{"architectures": `["MixtralForCausalLM"]`, "model_type": `"mixtral"`, "sliding_window": "null", "intermediate_size": "6",
		"num_local_experts": "3", "num_experts_per_tok": "2", "output_router_logits": "false", "router_aux_loss_coef": "0.02", "router_jitter_noise": "0.0"}
	qwen3 := map[string]string{"architectures": `["Qwen3MoeForCausalLM"]`, "model_type": `"qwen3_moe"`, "sliding_window": "null", "use_sliding_window": "false",
		"head_dim": "2", "num_experts": "3", "num_experts_per_tok": "2", "moe_intermediate_size": "6", "norm_topk_prob": "true", "decoder_sparse_step": "1", "mlp_only_layers": "[]"}
	ofMixtral := addExperts("block_sparse_moe.gate", "block_sparse_moe.experts", "w1", "w3", "w2")
	ofQwen := func(list map[string]tensor) {
		addHeadNorm(list)
		addExperts("mlp.gate", "mlp.experts", "gate_proj", "up_proj", "down_proj")(list)
	}
	for _, c := range []familyCase{
		{mixtral, ofMixtral, "use_cache", "true", ""}, {mixtral, nil, "use_cache", "true", "mlp.down_proj.weight is not known"},
		{mixtral, ofMixtral, "num_experts_per_tok", "4", "num_experts_per_tok in config.json is 4, and there are 3 experts"},
		{mixtral, ofMixtral, "num_experts_per_tok", "", "does not state num_experts_per_tok"}, {mixtral, ofMixtral, "num_local_experts", "9", "it has 9 experts"},
		{mixtral, ofMixtral, "num_local_experts", "1", "it has 1 experts"}, {mixtral, ofMixtral, "num_hidden_layers", "1000000", "which are too few for 1000000 layers"},
		{mixtral, ofMixtral, "intermediate_size", "7", "by config.json it has [7 8]"},
		{qwen3, ofQwen, "use_cache", "true", ""}, {qwen3, ofQwen, "norm_topk_prob", "", "does not state norm_topk_prob"}, {qwen3, ofQwen, "decoder_sparse_step", "2", "decoder_sparse_step"},
		{qwen3, ofQwen, "mlp_only_layers", "[0]", "mlp_only_layers"}, {qwen3, ofQwen, "num_experts", "4", "by config.json it has [4 8]"},
	} {
		c.check(t)
	}
}

// familyCase is a model with another entry of config.json, and why it is refused; empty: it is served.
type familyCase struct {
	entries     map[string]string
	change      func(map[string]tensor)
	name, value string
	reason      string
}

func (c familyCase) check(t *testing.T) {
	t.Helper()
	entries := maps.Clone(c.entries)
	entries[c.name] = c.value
	err := refused(t, of(t, entries, c.change))
	if c.reason == "" && err != nil || c.reason != "" && (models.KindOf(err) != models.KindConflict || !strings.Contains(err.Error(), c.reason)) {
		t.Errorf("%s %s %s: got %v, want %s", c.entries["architectures"], c.name, c.value, err, c.reason)
	}
}

// Models as they are published are served with what their families need besides Llama, and refused
// without it. The entries are those of Mistral 7B v0.3, Qwen2.5 and Qwen3.
func TestFamilies(t *testing.T) {
	mistral := map[string]string{"architectures": `["MistralForCausalLM"]`, "model_type": `"mistral"`, "sliding_window": "null"}
	qwen2 := map[string]string{"architectures": `["Qwen2ForCausalLM"]`, "model_type": `"qwen2"`, "sliding_window": "131072", "use_sliding_window": "false",
		"max_window_layers": "28", "use_mrope": "false", "attention_dropout": "0.0", "use_cache": "true"}
	qwen3 := map[string]string{"architectures": `["Qwen3ForCausalLM"]`, "model_type": `"qwen3"`, "sliding_window": "null", "use_sliding_window": "false",
		"max_window_layers": "36", "attention_bias": "false", "head_dim": "2", "rope_scaling": "null", "tie_word_embeddings": "true"}
	for _, c := range []familyCase{
		{mistral, nil, "rope_theta", "1000000.0", ""}, {mistral, nil, "sliding_window", "4096", "sliding_window in config.json is 4096"},
		{mistral, nil, "sliding_window", "", "does not state sliding_window"}, {mistral, nil, "num_key_value_heads", "", "does not state num_key_value_heads"},
		{mistral, nil, "model_type", `"llama"`, "model_type in config.json is llama, and for this architecture it is mistral"},
		{qwen2, addBias, "use_sliding_window", "false", ""}, {qwen2, addBias, "use_sliding_window", "true", "use_sliding_window"},
		{qwen2, nil, "use_cache", "true", "bias is missing"}, {qwen2, addBias, "use_mrope", "true", "use_mrope"},
		{qwen3, addHeadNorm, "use_cache", "true", ""}, {qwen3, nil, "use_cache", "true", "norm.weight is missing"}, {qwen3, addHeadNorm, "head_dim", "", "head_dim"},
	} {
		c.check(t)
	}
}

const vitConfig = `{"architectures":["ViTForImageClassification"],"model_type":"vit","hidden_size":8,"intermediate_size":12,"num_hidden_layers":1,
	"num_attention_heads":2,"image_size":4,"patch_size":2,"hidden_act":"gelu","id2label":{"0":"cat","1":"dog"},"layer_norm_eps":1e-12}`

// vit has the tensors of vitConfig.
func vit(list map[string]tensor) {
	clear(list)
	add := func(name string, shape ...int64) { list[name] = tensor{"F32", shape} }
	add("vit.embeddings.cls_token", 1, 1, 8)
	add("vit.embeddings.position_embeddings", 1, 5, 8)
	add("vit.embeddings.patch_embeddings.projection.weight", 8, 3, 2, 2)
	for name, n := range map[string]int64{"vit.embeddings.patch_embeddings.projection.bias": 8, "vit.layernorm.weight": 8, "vit.layernorm.bias": 8, "classifier.bias": 2} {
		add(name, n)
	}
	add("classifier.weight", 2, 8)
	at := "vit.encoder.layer.0."
	for name, shape := range map[string][2]int64{"attention.attention.query": {8, 8}, "attention.attention.key": {8, 8},
		"attention.attention.value": {8, 8}, "attention.output.dense": {8, 8}, "intermediate.dense": {12, 8}, "output.dense": {8, 12}} {
		add(at+name+".weight", shape[0], shape[1])
		add(at+name+".bias", shape[0])
	}
	for _, name := range []string{"layernorm_before", "layernorm_after"} {
		add(at+name+".weight", 8)
		add(at+name+".bias", 8)
	}
}

// Vision transformers are served with their labels, and refused if the worker would compute them
// wrongly or no request could be sent.
func TestVision(t *testing.T) {
	for _, c := range []struct{ name, value, reason string }{
		{"qkv_bias", "true", ""}, {"qkv_bias", "false", "qkv_bias"}, {"hidden_act", `"gelu_new"`, "hidden_act"}, {"hidden_act", `"silu"`, "hidden_act"},
		{"layer_norm_eps", "-1", "layer_norm_eps in config.json must be more than 0"}, {"layer_norm_eps", `"x"`, "layer_norm_eps"},
		{"patch_size", "3", "multiple of patch_size"}, {"patch_size", "", "patch_size"}, {"image_size", "8", "has the shape [1 5 8], and by config.json it has [1 17 8]"},
		{"num_channels", "1", "projection.weight has the shape [8 3 2 2]"}, {"num_attention_heads", "3", "3 attention heads do not divide"},
		{"id2label", `{"0":"a","1":"b","2":"c"}`, "classifier"}, {"id2label", "null", ""}, {"image_size", "8192", "must be at most 4096"},
		{"num_channels", "10000000", "values of an image"}, {"head_dim", "4", ""},
	} {
		err := refused(t, llama(t, withIn(t, vitConfig, c.name, c.value), vit))
		if c.reason == "" && err != nil || c.reason != "" && (models.KindOf(err) != models.KindConflict || !strings.Contains(err.Error(), c.reason)) {
			t.Errorf("%s %s: got %v, want %s", c.name, c.value, err, c.reason)
		}
	}
}
