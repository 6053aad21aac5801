package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

// encoder is a small text encoder with names as those of BERT, and the reference for it.
func encoder(architecture string, eps float64) (config, file string, r reference) {
	r = reference{hidden: 32, heads: 4, kv: 4, width: 8, layers: 4, epsilon: eps}
	all := map[string]any{"architectures": []string{architecture + "Model"}, "model_type": strings.ToLower(architecture), "hidden_size": 32,
		"intermediate_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 40, "max_position_embeddings": 26,
		"layer_norm_eps": eps, "hidden_act": "gelu", "position_embedding_type": "absolute", "type_vocab_size": 2, "pad_token_id": 1, "torch_dtype": "float32"}
	list := []tensor{{"embeddings.word_embeddings.weight", []int{40, 32}}, {"embeddings.position_embeddings.weight", []int{26, 32}},
		{"embeddings.token_type_embeddings.weight", []int{2, 32}}, {"embeddings.LayerNorm.weight", []int{32}}, {"embeddings.LayerNorm.bias", []int{32}},
		{"embeddings.position_ids", []int{1, 26}}, {"pooler.dense.weight", []int{32, 32}}, {"pooler.dense.bias", []int{32}}}
	for layer := range r.layers {
		at := fmt.Sprintf("encoder.layer.%d.", layer)
		for name, shape := range map[string][]int{"attention.self.query": {32, 32}, "attention.self.key": {32, 32}, "attention.self.value": {32, 32},
			"attention.output.dense": {32, 32}, "intermediate.dense": {48, 32}, "output.dense": {32, 48}, "attention.output.LayerNorm": {32}, "output.LayerNorm": {32}} {
			list = append(list, tensor{at + name + ".weight", shape}, tensor{at + name + ".bias", shape[:1]})
		}
	}
	file, r.values = randomTensors(list, 7)
	text, _ := json.Marshal(all) // of texts and numbers
	return string(text), file, r
}

// embed returns the hidden states of a text. Positions begin behind the filling token, if there is one: such
// tokens have its number, and are not counted.
func (r reference) embed(tokens []int, filler int) (x []row) {
	table := func(name string, i int) row { return r.values["embeddings."+name+".weight"][i*r.hidden:][:r.hidden] }
	next := filler + 1
	for _, token := range tokens {
		position := filler
		if token != filler {
			position = next
			next++
		}
		all := []row{table("word_embeddings", token)}
		all = added(added(all, []row{table("position_embeddings", position)}), []row{table("token_type_embeddings", 0)})
		x = append(x, r.layerNorm(all[0], "embeddings.LayerNorm"))
	}
	for layer := range r.layers {
		at := fmt.Sprintf("encoder.layer.%d.", layer)
		q, k, v := r.linear(x, at+"attention.self.query"), r.linear(x, at+"attention.self.key"), r.linear(x, at+"attention.self.value")
		y := added(x, r.linear(r.attend(q, k, v, false), at+"attention.output.dense"))
		x = mapped(y, func(one row) row { return r.layerNorm(one, at+"attention.output.LayerNorm") })
		y = mapped(r.linear(x, at+"intermediate.dense"), func(one row) row {
			out := make(row, len(one))
			for i, v := range one {
				out[i] = v * (1 + math.Erf(v/math.Sqrt2)) / 2
			}
			return out
		})
		y = added(x, r.linear(y, at+"output.dense"))
		x = mapped(y, func(one row) row { return r.layerNorm(one, at+"output.LayerNorm") })
	}
	return x
}

// first is the vector of the first token with the length 1, and mean that of all.
func first(x []row) row {
	sum, out := 0.0, make(row, len(x[0]))
	for _, v := range x[0] {
		sum += v * v
	}
	for i, v := range x[0] {
		out[i] = v / math.Sqrt(sum)
	}
	return out
}

func mean(x []row) row {
	out := make(row, len(x[0]))
	for _, one := range x {
		for i, v := range one {
			out[i] += v / float64(len(x))
		}
	}
	return out
}

// embeds compares embeddings with those that are wanted.
func (d served) embeds(input any, format string, want ...row) {
	d.t.Helper()
	var got struct {
		Data  []struct{ Embedding json.RawMessage }
		Usage struct {
			Tokens int `json:"total_tokens"`
		}
	}
	d.m.must("POST", fmt.Sprintf("/deployments/%d/v1/embeddings", d.id), map[string]any{"input": input, "encoding_format": format}, &got)
	if len(got.Data) != len(want) || got.Usage.Tokens < len(want) {
		d.t.Fatalf("%d embeddings of %d tokens", len(got.Data), got.Usage.Tokens)
	}
	for i := range want {
		values := make([]float32, len(want[i]))
		if format == "base64" {
			var text string
			err := json.Unmarshal(got.Data[i].Embedding, &text)
			data, failed := base64.StdEncoding.DecodeString(text)
			if err != nil || failed != nil || len(data) != 4*len(values) || binary.Read(bytes.NewReader(data), binary.LittleEndian, values) != nil {
				d.t.Fatalf("%s: %v, %v", got.Data[i].Embedding, err, failed)
			}
		} else if err := json.Unmarshal(got.Data[i].Embedding, &values); err != nil || len(values) != len(want[i]) {
			d.t.Fatal(len(values), err)
		}
		for j, x := range want[i] {
			if math.Abs(x-float64(values[j])) > 1e-4 {
				d.t.Fatalf("value %d of text %d is %g, want %g", j, i, values[j], x)
			}
		}
	}
}

const sentenceTokenizer = `{"added_tokens":[{"id":2,"content":"[CLS]","special":true,"normalized":false},{"id":3,"content":"[SEP]","special":true,"normalized":false}],
	"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},
	"pre_tokenizer":{"type":"BertPreTokenizer"},"decoder":{"type":"WordPiece","prefix":"##","cleanup":true},
	"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},
		{"SpecialToken":{"id":"[SEP]","type_id":0}}],"special_tokens":{"[CLS]":{"id":"[CLS]","ids":[2]},"[SEP]":{"id":"[SEP]","ids":[3]}}},
	"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,
		"vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"a":4,"dog":5,"##s":6,"run":7,"##ning":8,".":9}}}`

// A text encoder has the embeddings of the reference on one to four parts, divided by layers and by heads,
// with what sentence-transformers keeps beside it and without.
func TestDeploymentOfEmbeddings(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{gpus: "h100:4"})
	team := s.team("texts", resources{GPUCores: 300, GPUMemoryMiB: 80_000, CPUMilli: 32_000, MemoryMiB: 64_000, StorageMiB: 1000}, "ada")
	ada := team.Members[0]
	config, file, bert := encoder("Bert", 1e-12)
	dir := ada.writesModel(s, team.Project, "bert", config, file)
	ada.must("POST", fmt.Sprintf("/projects/%d/files/directories", team.Project), map[string]any{"path": dir + "/1_Pooling"}, nil)
	for name, content := range map[string]string{"tokenizer.json": sentenceTokenizer,
		"1_Pooling/config.json": `{"word_embedding_dimension":32,"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false}`,
		"modules.json": `[{"idx":0,"path":"","type":"sentence_transformers.models.Transformer"},{"idx":1,"path":"1_Pooling",
			"type":"sentence_transformers.models.Pooling"},{"idx":2,"path":"2_Normalize","type":"sentence_transformers.models.Normalize"}]`} {
		s.writes(dir+"/"+name, content)
	}
	config, file, roberta := encoder("Roberta", 1e-5)
	plain := ada.writesModel(s, team.Project, "roberta", config, file)
	for _, c := range []struct {
		parts int
		kind  string
	}{{1, ""}, {4, ""}, {3, "tensor-parallel"}} {
		d := ada.deployModel(t, team.Project, dir, c.parts, c.kind, 0)
		want := first(bert.embed([]int{2, 4, 5, 6, 7, 8, 9, 3}, -1))
		d.embeds("A dogs RUNNING.", "float", want)
		d.embeds([]any{"a dogs running .", []int{2, 5, 3}, "cat"}, "base64", want, first(bert.embed([]int{2, 5, 3}, -1)), first(bert.embed([]int{2, 1, 3}, -1)))
		if v := d.get(); len(v.Parts) != c.parts || v.Context != 26 || v.Task != "text-embedding" || c.kind == "" && v.ServiceType != "text-embedding" {
			t.Errorf("%+v", v)
		}
		ada.stopsDeployments(t, s)
		d = ada.deployModel(t, team.Project, plain, c.parts, c.kind, 24)
		tokens := []int{39, 0, 17, 5, 5, 5, 38, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}
		d.embeds([][]int{tokens, tokens[:1], tokens[:9]}, "float", mean(roberta.embed(tokens, 1)), mean(roberta.embed(tokens[:1], 1)), mean(roberta.embed(tokens[:9], 1)))
		var several [][]int // of which some are computed at once, and not in this order
		var means []row
		for i, n := range []int{3, 9, 3, 1, 3, 16, 9, 2} {
			several = append(several, tokens[i:i+n])
			means = append(means, mean(roberta.embed(tokens[i:i+n], 1)))
		}
		d.embeds(several, "float", means...)
		ada.stopsDeployments(t, s)
	}
	err := ada.try("POST", "/deployments", map[string]any{"project_id": team.Project, "path": plain, "parts": 1, "context": 25, "cores": 10}, nil)
	if err == nil || !strings.Contains(err.Error(), "must be at most 24") {
		t.Errorf("a position that the model does not have: %v", err)
	}
}
