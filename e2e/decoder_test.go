package e2e

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

const decoderConfig = `{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":32,"intermediate_size":64,"num_hidden_layers":4,
	"num_attention_heads":8,"num_key_value_heads":4,"vocab_size":256,"max_position_embeddings":512,"rms_norm_eps":1e-5,"torch_dtype":"float32"}`

// decoder is a safetensors file of a small decoder with random weights.
func decoder(seed uint64) string { return decoderOf(32, 64, 4, seed) }

// decoderOf is one with so many layers and a hidden and an intermediate size.
func decoderOf(hidden, inner, layers int, seed uint64) string {
	square, half := []int{hidden, hidden}, []int{hidden / 2, hidden}
	list := []tensor{{"model.embed_tokens.weight", []int{256, hidden}}, {"model.norm.weight", []int{hidden}}, {"lm_head.weight", []int{256, hidden}}}
	for layer := range layers {
		at := fmt.Sprintf("model.layers.%d.", layer)
		list = append(list, tensor{at + "input_layernorm.weight", []int{hidden}}, tensor{at + "post_attention_layernorm.weight", []int{hidden}},
			tensor{at + "self_attn.q_proj.weight", square}, tensor{at + "self_attn.k_proj.weight", half},
			tensor{at + "self_attn.v_proj.weight", half}, tensor{at + "self_attn.o_proj.weight", square},
			tensor{at + "mlp.gate_proj.weight", []int{inner, hidden}}, tensor{at + "mlp.up_proj.weight", []int{inner, hidden}},
			tensor{at + "mlp.down_proj.weight", []int{hidden, inner}})
	}
	file, _ := randomTensors(list, seed)
	return file
}

// tensor is one of a model in a test.
type tensor struct {
	name  string
	shape []int
}

// randomTensors is a safetensors file of random tensors, with their values by name.
func randomTensors(list []tensor, seed uint64) (file string, values map[string][]float64) {
	header, random := map[string]any{}, rand.New(rand.NewPCG(seed, 2))
	var data []byte
	values = map[string][]float64{}
	for _, t := range list {
		n, from := 1, len(data)
		for _, size := range t.shape {
			n *= size
		}
		if strings.HasSuffix(t.name, "_ids") { // numbers of positions, which nothing computes with
			data = append(data, make([]byte, 8*n)...)
			header[t.name] = map[string]any{"dtype": "I64", "shape": t.shape, "data_offsets": []int{from, len(data)}}
			continue
		}
		for range n {
			x := float32(random.NormFloat64() * 0.3)
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
			values[t.name] = append(values[t.name], float64(x))
		}
		header[t.name] = map[string]any{"dtype": "F32", "shape": t.shape, "data_offsets": []int{from, len(data)}}
	}
	text, _ := json.Marshal(header) // of texts and numbers
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(text)))) + string(text) + string(data), values
}
