package serving

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"weir/models"
	"weir/workspaces/shard"
)

const llamaConfig = `{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":8,"intermediate_size":12,"num_hidden_layers":2,
	"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":16,"max_position_embeddings":64,"hidden_act":"silu","eos_token_id":2}`

const llama3Rope = `{"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":16}`

// tensor is one of a model in a test.
type tensor struct {
	kind  string
	shape []int64
}

// llama is a model whose tensors are those of its configuration, with changes.
func llama(t *testing.T, config string, change func(map[string]tensor)) fstest.MapFS {
	t.Helper()
	list := map[string]tensor{}
	add := func(name string, shape ...int64) { list[name+".weight"] = tensor{"BF16", shape} }
	add("model.embed_tokens", 16, 8)
	add("model.norm", 8)
	add("lm_head", 16, 8)
	for layer := range 2 {
		at := fmt.Sprintf("model.layers.%d.", layer)
		add(at+"input_layernorm", 8)
		add(at+"post_attention_layernorm", 8)
		add(at+"self_attn.q_proj", 8, 8)
		add(at+"self_attn.k_proj", 4, 8)
		add(at+"self_attn.v_proj", 4, 8)
		add(at+"self_attn.o_proj", 8, 8)
		add(at+"mlp.gate_proj", 12, 8)
		add(at+"mlp.up_proj", 12, 8)
		add(at+"mlp.down_proj", 8, 12)
	}
	if change != nil {
		change(list)
	}
	header, at := map[string]any{}, int64(0)
	for _, name := range slices.Sorted(maps.Keys(list)) {
		one, size := list[name], int64(map[string]int{"F32": 4, "BF16": 2, "F8_E4M3": 1, "I64": 8}[list[name].kind])
		for _, n := range one.shape {
			size *= n
		}
		header[name] = map[string]any{"dtype": one.kind, "shape": one.shape, "data_offsets": []int64{at, at + size}}
		at += size
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	return fstest.MapFS{"config.json": {Data: []byte(config)}, "model.safetensors": {Data: append(file, make([]byte, at)...)}}
}

func refused(t *testing.T, folder fs.FS) error {
	t.Helper()
	m, err := shard.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	return Refuse(folder, m)
}

// with is the configuration with another entry, in place of one of the same name.
func with(t *testing.T, name, value string) string {
	t.Helper()
	return withIn(t, llamaConfig, name, value)
}

// withIn is the same of any configuration; an empty value: without the entry.
func withIn(t *testing.T, of, name, value string) string {
	t.Helper()
	config := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(of), &config); err != nil {
		t.Fatal(err)
	}
	config[name] = json.RawMessage(value)
	if value == "" {
		delete(config, name)
	}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Configurations that the worker would compute wrongly are refused with the reason, and those
// that say the same in other words are not.
func TestRefusedConfigurations(t *testing.T) {
	for _, c := range []struct{ name, value, reason string }{
		{"architectures", `["GemmaForCausalLM"]`, "the architecture GemmaForCausalLM is not implemented"}, {"model_type", `"mistral"`, "model_type"}, {"auto_map", `{"a":"b"}`, "auto_map"},
		{"hidden_act", `"gelu"`, `hidden_act in config.json is "gelu"`}, {"hidden_act", `"silu"`, ""}, {"hidden_act", "null", ""},
		{"sliding_window", "4096", "sliding_window in config.json is 4096"}, {"sliding_window", "null", ""},
		{"layer_types", `["full_attention","sliding_attention"]`, "layer_types"}, {"layer_types", `["full_attention","full_attention"]`, ""},
		{"attention_bias", "true", "attention_bias"}, {"attention_bias", "false", ""}, {"mlp_bias", "true", "mlp_bias"},
		{"quantization_config", `{"quant_method":"gptq"}`, "quantization_config"}, {"kv_lora_rank", "4", "kv_lora_rank"},
		{"partial_rotary_factor", "0.5", "partial_rotary_factor"}, {"attn_logit_softcapping", "50.0", "attn_logit_softcapping"}, {"use_qk_norm", "true", "use_qk_norm"},
		{"rope_scaling", `{"rope_type":"llama3","factor":8.0}`, `rope_scaling in config.json is {"rope_type":"llama3","factor":8.0}`},
		{"rope_scaling", llama3Rope, ""}, {"rope_scaling", strings.Replace(llama3Rope, "4.0", "1.0", 1), "rope_scaling"},
		{"rope_scaling", `{"type":"linear","factor":2}`, "rope_scaling"}, {"rope_scaling", `{"factor":2}`, "rope_scaling"}, {"rope_scaling", `{"rope_type":"default"}`, ""},
		{"rope_parameters", `{"rope_type":"yarn"}`, "rope_parameters"}, {"rope_parameters", `{"rope_type":"default","rope_theta":5e5}`, ""},
		{"rope_parameters", `{"rope_theta":0}`, "rope_theta"}, {"rope_theta", "-1", "rope_theta"}, {"rms_norm_eps", `"x"`, "rms_norm_eps"},
		{"num_local_experts", "4", "experts"}, {"num_hidden_layers", "null", "num_hidden_layers"}, {"hidden_size", "0", "hidden_size"},
		{"num_key_value_heads", "3", "num_key_value_heads in config.json is 3"}, {"num_attention_heads", "6", "6 attention heads do not divide the hidden size of 8"},
		{"head_dim", "3", "the size of an attention head is 3"}, {"head_dim", "2", ""}, {"head_dim", "4", "has the shape"},
		{"num_hidden_layers", "3", "model.layers.2.input_layernorm.weight is missing"}, {"num_hidden_layers", "1", "model.layers.1"},
		{"vocab_size", "32", "the shape [16 8], and by config.json it has [32 8]"}, {"intermediate_size", "16", "the shape [8 12], and by config.json it has [8 16]"},
		{"tie_word_embeddings", "true", ""}, {"tie_word_embeddings", "false", ""},
		{"eos_token_id", "16", "eos_token_id in config.json is 16; this model has the tokens 0 to 15"}, {"eos_token_id", `"a"`, "eos_token_id"}, {"eos_token_id", "[1,2]", ""},
	} {
		err := refused(t, llama(t, with(t, c.name, c.value), nil))
		if c.reason == "" && err != nil {
			t.Errorf("%s %s: got %v", c.name, c.value, err)
		} else if c.reason != "" && (models.KindOf(err) != models.KindConflict || !strings.Contains(err.Error(), c.reason)) {
			t.Errorf("%s %s: got %v, want %s", c.name, c.value, err, c.reason)
		}
	}
}

// Files whose tensors are not those of the configuration are refused.
func TestRefusedTensors(t *testing.T) {
	for reason, change := range map[string]func(map[string]tensor){
		"": func(map[string]tensor) {},
		"the tensor model.layers.0.self_attn.q_proj.bias is not known": func(list map[string]tensor) {
			list["model.layers.0.self_attn.q_proj.bias"] = tensor{"F32", []int64{8}}
		},
		"the tensor model.layers.1.mlp.up_proj.weight is missing": func(list map[string]tensor) { delete(list, "model.layers.1.mlp.up_proj.weight") },
		"the tensor lm_head.weight is missing":                    func(list map[string]tensor) { delete(list, "lm_head.weight") },
		"the tensor model.norm.weight has the type F8_E4M3":       func(list map[string]tensor) { list["model.norm.weight"] = tensor{"F8_E4M3", []int64{8}} },
		"the tensor model.layers.0.mlp.down_proj.weight has the shape [12 8], and by config.json it has [8 12]": func(list map[string]tensor) {
			list["model.layers.0.mlp.down_proj.weight"] = tensor{"F32", []int64{12, 8}}
		},
	} {
		err := refused(t, llama(t, llamaConfig, change))
		if reason == "" && err != nil || reason != "" && (err == nil || !strings.Contains(err.Error(), reason)) {
			t.Errorf("got %v, want %s", err, reason)
		}
	}
	old := func(list map[string]tensor) {
		list["model.layers.0.self_attn.rotary_emb.inv_freq"] = tensor{"F32", []int64{1}}
	}
	if err := refused(t, llama(t, llamaConfig, old)); err != nil {
		t.Errorf("frequencies that are computed: %v", err)
	}
	if err := refused(t, llama(t, with(t, "tie_word_embeddings", "true"), func(list map[string]tensor) { delete(list, "lm_head.weight") })); err != nil {
		t.Errorf("tied embeddings: %v", err)
	}
}

// The tokens that end a text are those of generation_config.json, else of config.json.
func TestEndOfText(t *testing.T) {
	for generation, want := range map[string][]int32{"": {2}, `{"eos_token_id":[3,4]}`: {3, 4}, `{"temperature":1}`: {2}, `{"eos_token_id":null}`: {2}} {
		folder := llama(t, llamaConfig, nil)
		if generation != "" {
			folder[generationName] = &fstest.MapFile{Data: []byte(generation)}
		}
		m, err := shard.Read(folder)
		if err != nil {
			t.Fatal(err)
		}
		if g, err := readGeneration(folder, m); err != nil || !slices.Equal(g.End, want) {
			t.Errorf("%s: %v, %v", generation, g.End, err)
		}
		folder[generationName] = &fstest.MapFile{Data: []byte("[1]")}
		if err := Refuse(folder, m); models.KindOf(err) != models.KindConflict {
			t.Errorf("got %v", err)
		}
	}
}
