package e2e

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"weir/handlers"
)

// families are decoders that differ from Llama, by the entries of config.json that do.
var families = map[string]map[string]any{
	"mistral": {"architectures": []string{"MistralForCausalLM"}, "model_type": "mistral", "sliding_window": nil, "rope_theta": 1e6},
	"llama31": {"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "rope_theta": 5e5, "rope_scaling": map[string]any{
		"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 256}},
	"qwen2":   {"architectures": []string{"Qwen2ForCausalLM"}, "model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": false},
	"qwen3":   {"architectures": []string{"Qwen3ForCausalLM"}, "model_type": "qwen3", "head_dim": 16, "tie_word_embeddings": true},
	"mixtral": {"architectures": []string{"MixtralForCausalLM"}, "model_type": "mixtral", "sliding_window": nil, "num_local_experts": 5, "num_experts_per_tok": 2},
	"qwen3moe": {"architectures": []string{"Qwen3MoeForCausalLM"}, "model_type": "qwen3_moe", "head_dim": 16, "num_experts": 5, "num_experts_per_tok": 3,
		"moe_intermediate_size": 48, "norm_topk_prob": false},
}

// familyModel is a small model of a family, and the reference for it.
func familyModel(t *testing.T, name string) (config, file string, r reference) {
	t.Helper()
	r = reference{hidden: 32, heads: 4, kv: 2, width: 8, layers: 3, epsilon: 1e-5}
	all := map[string]any{"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
		"num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "torch_dtype": "float32"}
	maps.Copy(all, families[name])
	if width, stated := all["head_dim"].(int); stated {
		r.width = width
	}
	switch r.used, _ = all["num_experts_per_tok"].(int); name {
	case "mixtral":
		r.experts, r.normalized = "block_sparse_moe", true
	case "qwen3moe":
		r.experts = "mlp"
	}
	list := []tensor{{"model.embed_tokens.weight", []int{256, 32}}, {"model.norm.weight", []int{32}}}
	if all["tie_word_embeddings"] != true {
		list = append(list, tensor{"lm_head.weight", []int{256, 32}})
	}
	for layer := range r.layers {
		at := fmt.Sprintf("model.layers.%d.", layer)
		for _, norm := range []string{"input_layernorm", "post_attention_layernorm"} {
			list = append(list, tensor{at + norm + ".weight", []int{32}})
		}
		for what, n := range map[string]int{"q": r.heads, "k": r.kv, "v": r.kv} {
			list = append(list, tensor{at + "self_attn." + what + "_proj.weight", []int{n * r.width, 32}})
			if name == "qwen2" {
				list = append(list, tensor{at + "self_attn." + what + "_proj.bias", []int{n * r.width}})
			}
			if r.width == 16 && what != "v" { // Qwen3
				list = append(list, tensor{at + "self_attn." + what + "_norm.weight", []int{r.width}})
			}
		}
		list = append(list, tensor{at + "self_attn.o_proj.weight", []int{32, r.heads * r.width}})
		list = append(list, r.networks(at)...)
	}
	theta, stated := all["rope_theta"].(float64)
	if !stated {
		theta = 10_000
		if name == "mixtral" { // the default of MixtralConfig in transformers
			theta = 1e6
		}
	}
	for i := 0; i < r.width; i += 2 {
		f := math.Pow(theta, -float64(i)/float64(r.width))
		if name == "llama31" { // slow ones are divided by 8, fast ones are not, and those between partly
			switch turns := 256 * f / (2 * math.Pi); {
			case turns < 1:
				f /= 8
			case turns < 4:
				smooth := (turns - 1) / (4 - 1)
				f = (1-smooth)*f/8 + smooth*f
			}
		}
		r.frequencies = append(r.frequencies, f)
	}
	file, r.values = randomTensors(list, 3)
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), file, r
}

// networks are the tensors of the feed-forward network of a layer, or of its experts.
func (r reference) networks(at string) (list []tensor) {
	three := func(at, gate, up, down string) {
		list = append(list, tensor{at + gate + ".weight", []int{48, 32}}, tensor{at + up + ".weight", []int{48, 32}}, tensor{at + down + ".weight", []int{32, 48}})
	}
	if r.experts == "" {
		three(at+"mlp.", "gate_proj", "up_proj", "down_proj")
		return list
	}
	list = append(list, tensor{at + r.experts + ".gate.weight", []int{5, 32}})
	for n := range 5 {
		inner := fmt.Sprintf("%s%s.experts.%d.", at, r.experts, n)
		if r.experts == "mlp" {
			three(inner, "gate_proj", "up_proj", "down_proj")
		} else {
			three(inner, "w1", "w3", "w2")
		}
	}
	return list
}

// continues compares completions with the reference: each token is the most probable one, with the
// same probability.
func (d served) continues(r reference) {
	d.t.Helper()
	got, ok := d.asks()
	if !ok {
		d.t.Fatalf("it is not served: %+v", d.get())
	}
	tokens := bytesOf(completionRequest["prompt"].(string))
	for i, id := range got.Choices[0].TokenIDs {
		logits := r.decode(tokens)
		best, sum := 0, 0.0
		for j, x := range logits {
			if x > logits[best] {
				best = j
			}
			sum += math.Exp(x)
		}
		logprob := logits[best] - math.Log(sum)
		if int(id) != best || math.Abs(logprob-got.Choices[0].Logprobs.TokenLogprobs[i]) > 1e-4 {
			d.t.Fatalf("token %d is %d (%g), want %d (%g)", i, id, got.Choices[0].Logprobs.TokenLogprobs[i], best, logprob)
		}
		tokens = append(tokens, id)
	}
	if n := len(got.Choices[0].TokenIDs); n != completionRequest["max_tokens"] {
		d.t.Errorf("%d tokens", n)
	}
}

func bytesOf(text string) (list []int32) {
	for _, b := range []byte(text) {
		list = append(list, int32(b))
	}
	return list
}

const visionConfig = `{"architectures":["ViTForImageClassification"],"model_type":"vit","hidden_size":32,"intermediate_size":48,"num_hidden_layers":4,
	"num_attention_heads":4,"image_size":12,"patch_size":4,"num_channels":3,"layer_norm_eps":1e-12,"hidden_act":"gelu","torch_dtype":"float32",
	"id2label":{"0":"cat","1":"dog"}}`

// vision is a safetensors file of a small vision transformer, and the reference for it.
func vision() (file string, r reference) {
	r = reference{hidden: 32, heads: 4, kv: 4, width: 8, layers: 4, epsilon: 1e-12}
	list := []tensor{{"vit.embeddings.cls_token", []int{1, 1, 32}}, {"vit.embeddings.position_embeddings", []int{1, 10, 32}},
		{"vit.embeddings.patch_embeddings.projection.weight", []int{32, 3, 4, 4}}, {"vit.embeddings.patch_embeddings.projection.bias", []int{32}},
		{"vit.layernorm.weight", []int{32}}, {"vit.layernorm.bias", []int{32}}, {"classifier.weight", []int{2, 32}}, {"classifier.bias", []int{2}}}
	for layer := range r.layers {
		at := fmt.Sprintf("vit.encoder.layer.%d.", layer)
		for _, name := range []string{"attention.attention.query", "attention.attention.key", "attention.attention.value", "attention.output.dense"} {
			list = append(list, tensor{at + name + ".weight", []int{32, 32}}, tensor{at + name + ".bias", []int{32}})
		}
		list = append(list, tensor{at + "intermediate.dense.weight", []int{48, 32}}, tensor{at + "intermediate.dense.bias", []int{48}},
			tensor{at + "output.dense.weight", []int{32, 48}}, tensor{at + "output.dense.bias", []int{32}})
		for _, name := range []string{"layernorm_before", "layernorm_after"} {
			list = append(list, tensor{at + name + ".weight", []int{32}}, tensor{at + name + ".bias", []int{32}})
		}
	}
	file, r.values = randomTensors(list, 5)
	return file, r
}

// classifies compares the logits of images with the reference.
func (d served) classifies(s *server, r reference, images int, asBinary bool) {
	d.t.Helper()
	random := rand.New(rand.NewPCG(9, 9))
	pixels := make([]float64, images*3*12*12)
	for i := range pixels {
		pixels[i] = float64(float32(random.NormFloat64()))
	}
	var got struct {
		Outputs []struct {
			Name  string
			Shape []int
			Data  json.RawMessage
		}
	}
	input := map[string]any{"name": "pixel_values", "datatype": "FP32", "shape": []int{images, 3, 12, 12}}
	path := fmt.Sprintf("/deployments/%d/v2/models/vit/infer", d.id)
	if asBinary {
		input["parameters"] = map[string]any{"binary_data_size": 4 * len(pixels)}
		d.sendsBinary(s, path, map[string]any{"inputs": []any{input}}, pixels, &got)
	} else {
		input["data"] = pixels
		d.m.must("POST", path, map[string]any{"inputs": []any{input}}, &got)
	}
	var logits []float64
	var labels []string
	if err := json.Unmarshal(got.Outputs[0].Data, &logits); err != nil {
		d.t.Fatal(err)
	}
	if err := json.Unmarshal(got.Outputs[1].Data, &labels); err != nil {
		d.t.Fatal(err)
	}
	for i := range images {
		want, best := r.classify(pixels[i*3*12*12:][:3*12*12], 3, 12, 4), 0
		for j, x := range want {
			if math.Abs(x-logits[2*i+j]) > 1e-4 {
				d.t.Fatalf("image %d has the logits %v, want %v", i, logits[2*i:][:2], want)
			}
			if x > want[best] {
				best = j
			}
		}
		if labels[i] != []string{"cat", "dog"}[best] {
			d.t.Errorf("image %d is %s, want %v", i, labels[i], want)
		}
	}
}

// sendsBinary sends a request whose values follow its JSON.
func (d served) sendsBinary(s *server, path string, request any, values []float64, into any) {
	d.t.Helper()
	body, err := json.Marshal(request)
	if err != nil {
		d.t.Fatal(err)
	}
	head := len(body)
	for _, x := range values {
		body = binary.LittleEndian.AppendUint32(body, math.Float32bits(float32(x)))
	}
	r, err := http.NewRequestWithContext(d.t.Context(), "POST", s.url+"/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.m.token)
	r.Header.Set("Inference-Header-Content-Length", strconv.Itoa(head))
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil || response.StatusCode != http.StatusOK {
		d.t.Fatalf("%s, %v", response.Status, err)
	}
}

// Each family of decoders has the tokens of the reference, divided by layers, and by heads or experts.
func TestDeploymentFamilies(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{gpus: "h100:4"})
	team := s.team("families", resources{GPUCores: 300, GPUMemoryMiB: 80_000, CPUMilli: 32_000, MemoryMiB: 64_000, StorageMiB: 1000}, "ada")
	ada := team.Members[0]
	for name := range families {
		config, file, r := familyModel(t, name)
		dir := ada.writesModel(s, team.Project, name, config, file)
		for _, kind := range []string{"text-generation", map[bool]string{true: "tensor-parallel", false: ""}[r.experts == ""]} {
			d := ada.deployModel(t, team.Project, dir, 2, kind, 64)
			d.continues(r)
			if v := d.get(); kind == "" && (v.ServiceType != "mixture-of-experts" || v.Parts[0].Last != "1" || v.Parts[1].First != "2") {
				t.Errorf("%+v", v)
			}
			ada.stopsDeployments(t, s)
		}
	}
}

// A vision transformer has the logits of the reference on one to four parts, divided by layers and by
// heads.
func TestDeploymentOfVision(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{gpus: "h100:4"})
	team := s.team("vision", resources{GPUCores: 300, GPUMemoryMiB: 80_000, CPUMilli: 32_000, MemoryMiB: 64_000, StorageMiB: 1000}, "ada")
	ada := team.Members[0]
	file, r := vision()
	dir := ada.writesModel(s, team.Project, "vit", visionConfig, file)
	for _, c := range []struct {
		parts int
		kind  string
	}{{1, ""}, {2, ""}, {3, ""}, {4, ""}, {2, "tensor-parallel"}, {3, "tensor-parallel"}, {4, "tensor-parallel"}} {
		d := ada.deployModel(t, team.Project, dir, c.parts, c.kind, 0)
		d.classifies(s, r, 5, false)
		d.classifies(s, r, 7, true)
		var model handlers.InferModel
		ada.must("GET", fmt.Sprintf("/deployments/%d/v2/models/vit", d.id), nil, &model)
		if !slices.Equal(model.Inputs[0].Shape, []int64{-1, 3, 12, 12}) || len(model.Labels) != 2 {
			t.Errorf("%+v", model)
		}
		if v := d.get(); len(v.Parts) != c.parts || v.Context != 10 || v.Task != "image-classification" {
			t.Errorf("%+v", v)
		}
		ada.stopsDeployments(t, s)
	}
}
