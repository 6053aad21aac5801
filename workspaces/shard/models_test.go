package shard

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/fstest"
)

// tensorsOf are names with shapes in BF16, in the order of the file.
type tensorsOf []struct {
	name  string
	shape []int64
}

// safetensors is a file with random values.
func safetensors(t testing.TB, list tensorsOf) []byte {
	t.Helper()
	header, at := map[string]any{"__metadata__": map[string]string{"format": "pt"}}, int64(0)
	for _, one := range list {
		_, size, _ := sizeOf("BF16", one.shape)
		header[one.name] = map[string]any{"dtype": "BF16", "shape": one.shape, "data_offsets": []int64{at, at + size}}
		at += size
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, at)
	random := rand.NewChaCha8([32]byte{byte(len(list))})
	if _, err := random.Read(data); err != nil {
		t.Fatal(err)
	}
	return raw(string(text), data)
}

// raw is a file with a header and data as they are.
func raw(header string, data []byte) []byte {
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(file, header...), data...)
}

const llamaConfig = `{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":64,"intermediate_size":128,"num_hidden_layers":4,
	"num_attention_heads":8,"num_key_value_heads":2,"vocab_size":256,"max_position_embeddings":2048,"torch_dtype":"bfloat16"}`

func llamaLayer(n int) tensorsOf {
	at := fmt.Sprintf("model.layers.%d.", n)
	return tensorsOf{{at + "input_layernorm.weight", []int64{64}}, {at + "mlp.down_proj.weight", []int64{64, 128}}, {at + "mlp.gate_proj.weight", []int64{128, 64}},
		{at + "mlp.up_proj.weight", []int64{128, 64}}, {at + "self_attn.k_proj.weight", []int64{16, 64}}, {at + "self_attn.o_proj.weight", []int64{64, 64}},
		{at + "self_attn.q_proj.weight", []int64{64, 64}}, {at + "self_attn.v_proj.weight", []int64{16, 64}}}
}

// llama is a model of four layers in two files with an index.
func llama(t testing.TB) fstest.MapFS {
	first, second := tensorsOf{{"model.embed_tokens.weight", []int64{256, 64}}}, tensorsOf{{"model.norm.weight", []int64{64}}, {"lm_head.weight", []int64{256, 64}}}
	first = append(append(first, llamaLayer(0)...), llamaLayer(1)...)
	second = append(append(second, llamaLayer(2)...), llamaLayer(3)...)
	index := map[string]string{}
	for _, one := range first {
		index[one.name] = "model-00001-of-00002.safetensors"
	}
	for _, one := range second {
		index[one.name] = "model-00002-of-00002.safetensors"
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"total_size": 1}, "weight_map": index})
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{"config.json": {Data: []byte(llamaConfig)}, indexName: {Data: text},
		"model-00001-of-00002.safetensors": {Data: safetensors(t, first)}, "model-00002-of-00002.safetensors": {Data: safetensors(t, second)},
		"consolidated.safetensors": {Data: []byte("is not in the index")}}
}

// mixtral is a model of two layers with four experts each, in one file.
func mixtral(t testing.TB) fstest.MapFS {
	list := tensorsOf{{"model.embed_tokens.weight", []int64{256, 64}}, {"lm_head.weight", []int64{256, 64}}}
	for layer := range 2 {
		at := fmt.Sprintf("model.layers.%d.", layer)
		list = append(list, tensorsOf{{at + "self_attn.q_proj.weight", []int64{64, 64}}, {at + "block_sparse_moe.gate.weight", []int64{4, 64}}}...)
		for expert := range 4 {
			list = append(list, tensorsOf{{fmt.Sprintf("%sblock_sparse_moe.experts.%d.w1.weight", at, expert), []int64{128, 64}}}...)
		}
	}
	return fstest.MapFS{"model.safetensors": {Data: safetensors(t, list)}, "config.json": {Data: []byte(`{"architectures":["MixtralForCausalLM"],
		"hidden_size":64,"intermediate_size":128,"num_attention_heads":8,"num_local_experts":4,"num_experts_per_tok":2,"vocab_size":256}`)}}
}
