package serving

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"weir/models"
	"weir/workspaces/shard"
)

const bertConfig = `{"architectures":["BertModel"],"model_type":"bert","hidden_size":8,"intermediate_size":12,"num_hidden_layers":1,
	"num_attention_heads":2,"vocab_size":16,"max_position_embeddings":10,"hidden_act":"gelu","layer_norm_eps":1e-12,"pad_token_id":0}`

// bert has the tensors of bertConfig, and some that old files have.
func bert(list map[string]tensor) {
	clear(list)
	add := func(name string, shape ...int64) { list[name] = tensor{"F32", shape} }
	add("embeddings.word_embeddings.weight", 16, 8)
	add("embeddings.position_embeddings.weight", 10, 8)
	add("embeddings.token_type_embeddings.weight", 2, 8)
	add("pooler.dense.weight", 8, 8)
	list["embeddings.position_ids"] = tensor{"I64", []int64{1, 10}}
	at := "encoder.layer.0."
	for name, shape := range map[string][2]int64{"attention.self.query": {8, 8}, "attention.self.key": {8, 8}, "attention.self.value": {8, 8},
		"attention.output.dense": {8, 8}, "intermediate.dense": {12, 8}, "output.dense": {8, 12}} {
		add(at+name+".weight", shape[0], shape[1])
		add(at+name+".bias", shape[0])
	}
	for _, name := range []string{"embeddings.LayerNorm", at + "attention.output.LayerNorm", at + "output.LayerNorm"} {
		add(name+".weight", 8)
		add(name+".bias", 8)
	}
}

// Text encoders are served, and refused if the worker would compute them wrongly.
func TestEncoders(t *testing.T) {
	for _, c := range []struct{ name, value, reason string }{
		{"use_cache", "true", ""}, {"position_embedding_type", `"absolute"`, ""}, {"position_embedding_type", `"relative_key"`, "relative_key"},
		{"hidden_act", `"gelu_new"`, "hidden_act"}, {"is_decoder", "true", "is_decoder"}, {"type_vocab_size", "3", "token_type_embeddings"},
		{"type_vocab_size", "0", "token_type_embeddings"}, {"layer_norm_eps", "0", "layer_norm_eps"}, {"num_attention_heads", "3", "3 attention heads do not divide"},
		{"max_position_embeddings", "", "max_position_embeddings"}, {"max_position_embeddings", "12", "by config.json it has [12 8]"},
		{"max_position_embeddings", "10000000", "hidden values of a text"}, {"auto_map", `{"AutoModel":"x"}`, "auto_map"}, {"model_type", `"camembert"`, "camembert"},
		{"vocab_size", "17", "word_embeddings"}, {"num_hidden_layers", "2", "encoder.layer.1"},
	} {
		err := refused(t, llama(t, withIn(t, bertConfig, c.name, c.value), bert))
		if c.reason == "" && err != nil || c.reason != "" && (models.KindOf(err) != models.KindConflict || !strings.Contains(err.Error(), c.reason)) {
			t.Errorf("%s %s: got %v, want %s", c.name, c.value, err, c.reason)
		}
	}
}

// Positions of RoBERTa begin behind the number of its filling token, which leaves fewer of them.
func TestFirstPosition(t *testing.T) {
	roberta := strings.NewReplacer("BertModel", "RobertaModel", `"bert"`, `"roberta"`).Replace(bertConfig)
	for filler, want := range map[string]int64{"1": 8, "0": 9, "": 8, "null": 8, "9": 0, "-7": 0, `"x"`: 0, "1.5": 0} {
		m := modelOf(t, llama(t, withIn(t, roberta, "pad_token_id", filler), bert))
		why := Check(m)
		if want > 0 && (!why.Empty() || MaxContext(m) != want) || want == 0 && !strings.Contains(why.String(), "pad_token_id") {
			t.Errorf("%s: %s, %d tokens", filler, why, MaxContext(m))
		}
	}
	if n := MaxContext(modelOf(t, llama(t, bertConfig, bert))); n != 10 {
		t.Errorf("BERT has %d", n)
	}
}

func modelOf(t *testing.T, folder fstest.MapFS) shard.Model {
	t.Helper()
	m, err := shard.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const (
	transformer = `{"idx":0,"path":"","type":"sentence_transformers.models.Transformer"}`
	pooling     = `{"idx":1,"path":"1_Pooling","type":"sentence_transformers.models.Pooling"}`
	normalize   = `{"idx":2,"path":"2_Normalize","type":"sentence_transformers.models.Normalize"}`
	dense       = `{"idx":2,"path":"2_Dense","type":"sentence_transformers.models.Dense"}`
)

// What sentence-transformers keeps beside a model says how vectors are made; what is not implemented is
// refused with its file.
func TestEmbedding(t *testing.T) {
	list := func(modules ...string) string { return "[" + strings.Join(modules, ",") + "]" }
	const cls = `{"word_embedding_dimension":8,"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false,"include_prompt":true}`
	mean := strings.NewReplacer("true,", "false,", "false,", "true,").Replace(cls)
	for _, c := range []struct {
		files  map[string]string
		want   Embedding
		reason string
	}{
		{nil, Embedding{16, "mean", false}, ""},
		{map[string]string{modulesName: list(transformer, pooling), poolingName: cls}, Embedding{16, "cls", false}, ""},
		{map[string]string{modulesName: list(transformer, pooling, normalize), poolingName: mean, sentencesNames[0]: `{"max_seq_length":8,"do_lower_case":false}`,
			promptsName: `{"prompts":{},"default_prompt_name":null}`}, Embedding{16, "mean", true}, ""},
		{map[string]string{modulesName: list(transformer, pooling, dense), poolingName: cls}, Embedding{}, "Dense"},
		{map[string]string{modulesName: list(pooling, transformer), poolingName: cls}, Embedding{}, "Pooling"},
		{map[string]string{modulesName: list(transformer), poolingName: cls}, Embedding{}, "has no Pooling"},
		{map[string]string{modulesName: list(transformer, pooling)}, Embedding{}, "is missing"},
		{map[string]string{modulesName: list(transformer, pooling), poolingName: strings.ReplaceAll(cls, "false", "true")}, Embedding{}, "either"},
		{map[string]string{modulesName: list(transformer, pooling), poolingName: strings.ReplaceAll(cls, "cls_token", "max_tokens")}, Embedding{}, "either"},
		{map[string]string{modulesName: list(transformer, pooling), poolingName: strings.ReplaceAll(cls, ":8", ":9")}, Embedding{}, "of 8 values"},
		{map[string]string{modulesName: list(transformer, pooling), poolingName: `{"word_embedding_dimension":8}`}, Embedding{16, "mean", false}, ""},
		{map[string]string{modulesName: list(transformer, pooling), poolingName: strings.ReplaceAll(cls, `,"pooling_mode_mean_tokens":false`, "")}, Embedding{}, "either"},
		{map[string]string{modulesName: list(transformer, pooling), poolingName: strings.ReplaceAll(cls, ":8", `:8,"pooling_mode":"max"`)}, Embedding{}, "either"},
		{map[string]string{modulesName: list(transformer, pooling), poolingName: strings.ReplaceAll(mean, ":8", `:8,"pooling_mode":"cls"`)}, Embedding{16, "cls", false}, ""},
		{map[string]string{modulesName: list(transformer, pooling), poolingName: strings.ReplaceAll(cls, "true,", "false,")}, Embedding{}, "does not state one"},
		{map[string]string{tokenizerName: `{"normalizer":{"lowercase":true}}`, tokenizerConfigName: `{"do_lower_case":false}`}, Embedding{}, "do_lower_case in tokenizer_config.json"},
		{map[string]string{tokenizerName: `{"normalizer":{"lowercase":true},"pre_tokenizer":{"add_prefix_space":true}}`,
			tokenizerConfigName: `{"do_lower_case":true,"strip_accents":null,"add_prefix_space":true}`}, Embedding{16, "mean", false}, ""},
		{map[string]string{tokenizerName: `{"pre_tokenizer":{"add_prefix_space":false}}`, tokenizerConfigName: `{"add_prefix_space":true}`}, Embedding{}, "add_prefix_space"},
		{map[string]string{modulesName: `{}`}, Embedding{}, "expected form"},
		{map[string]string{modulesName: list(transformer, pooling), poolingName: cls, sentencesNames[0]: `{"do_lower_case":true}`}, Embedding{}, "do_lower_case"},
		{map[string]string{modulesName: list(transformer, pooling), poolingName: cls, promptsName: `{"default_prompt_name":"query"}`}, Embedding{}, "default_prompt_name"},
	} {
		folder := llama(t, bertConfig, bert)
		for name, content := range c.files {
			folder[name] = &fstest.MapFile{Data: []byte(content)}
		}
		g, err := readGeneration(folder, modelOf(t, folder))
		if c.reason == "" && (err != nil || *g.Embedding != c.want) || c.reason != "" && (models.KindOf(err) != models.KindConflict || !strings.Contains(err.Error(), c.reason)) {
			t.Errorf("%v: got %+v, %v", c.files, g.Embedding, err)
		}
	}
}

// Each file that says how vectors are made is one of the model's.
func TestFilesOfEmbeddings(t *testing.T) {
	states := map[string]string{}
	folder := llama(t, bertConfig, bert)
	for _, name := range []string{"", modulesName, poolingName, sentencesNames[0], sentencesNames[2], promptsName, "1_Pooling/other.json"} {
		changed := maps.Clone(folder)
		if name != "" {
			changed[name] = &fstest.MapFile{Data: []byte("{}")}
		}
		state, err := Files(changed)
		if other, known := states[state]; err != nil || known != (name == "1_Pooling/other.json") {
			t.Errorf("%s is as %s, %v", name, other, err)
		}
		states[state] = name
	}
}

// Vectors get the length 1, also those without one.
func TestScale(t *testing.T) {
	v, zero := []float32{3, 0, -4}, []float32{0, 0}
	scale(v)
	scale(zero)
	if v[0] != 0.6 || v[2] != -0.8 || zero[0] != 0 {
		t.Error(v, zero)
	}
}
