package shard

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"weir/models"
)

func read(t *testing.T, folder fstest.MapFS) Model {
	t.Helper()
	m, err := Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFacts(t *testing.T) {
	f := read(t, llama(t)).Facts
	var names []string
	for _, l := range f.Layers {
		names = append(names, l.Name)
	}
	if want := "input model.layers.0 model.layers.1 model.layers.2 model.layers.3 output"; strings.Join(names, " ") != want {
		t.Errorf("got %q", names)
	}
	const layer = 64 + 3*128*64 + 2*64*64 + 2*16*64
	if l := f.Layers[2]; l.Parameters != layer || l.Bytes != 2*layer || l.MatrixParameters != layer-64 || l.Tensors != 8 || l.Kind != models.LayerInner {
		t.Errorf("got %+v", l)
	}
	const all = 4*layer + 2*256*64 + 64
	if f.Parameters != all || f.Bytes != 2*all || f.Tensors != 35 || f.Files != 2 || len(f.Types) != 1 || f.Types[0] != (models.ModelType{Type: "BF16", Tensors: 35, Parameters: all, Bytes: 2 * all}) {
		t.Errorf("got %+v", f)
	}
	if f.Type != "llama" || f.Architecture != "LlamaForCausalLM" || f.Heads != 8 || f.KVHeads != 2 || f.HeadSize != 8 || f.MaxContext != 2048 || f.ValueBytes != 2 || f.Experts != 0 {
		t.Errorf("got %+v", f)
	}
	moe := read(t, mixtral(t)).Facts
	if l := moe.Layers[1]; moe.Experts != 4 || moe.ExpertsUsed != 2 || l.ExpertParameters != 4*128*64 || l.MatrixParameters != 64*64+4*64 {
		t.Errorf("got %+v", moe)
	}
}

// The memory of a model is computed by hand.
func TestMemory(t *testing.T) {
	f := read(t, llama(t)).Facts
	m := Memory(f, Load{Batch: 3, Context: 100})
	kv, activations := int64(2*4*2*8*3*100*2), int64((3*100*2*64+100*2*128)*2+4*3*256)
	if m.Weights != f.Bytes || m.KVCache != kv || m.Activations != activations || m.Total != f.Bytes+kv+activations || m.Partial {
		t.Errorf("got %+v, want %d and %d", m, kv, activations)
	}
	const chunk = 4 << 20 / 64 // tokens
	for context, values := range map[int64]int64{chunk: 2*2*64*chunk + 2*128*chunk, 1 << 20: 2*2*64*chunk + 2*(8+2)*8<<20} {
		if got, want := Memory(f, Load{Batch: 2, Context: context}).Activations, values*2+4*2*256; got != want {
			t.Errorf("with %d tokens, %d, want %d", context, got, want)
		}
	}
	classifier := f
	classifier.Architecture = "LlamaForSequenceClassification"
	if m := Memory(classifier, Load{Batch: 3, Context: 100}); m.KVCache != 0 || m.Activations != 3*100*(2*64+2*128)*2+4*3*256 {
		t.Errorf("in one pass, %+v", m)
	}
	if f.Latent = 5; Memory(f, Load{Batch: 3, Context: 100}).KVCache != 4*5*3*100*2 {
		t.Error("a compressed cache is smaller")
	}
	if most := Memory(models.ModelFacts{Bytes: 1, Hidden: maxConfigValue, Heads: maxConfigValue, KVHeads: maxConfigValue, HeadSize: maxConfigValue, ValueBytes: 8,
		Layers: f.Layers}, Load{MaxBatch, MaxContext}); most.Total != enough {
		t.Errorf("got %+v", most)
	}
	if m := Memory(models.ModelFacts{Bytes: 7}, Load{1, 1}); !m.Partial || m.Total != 7 {
		t.Errorf("got %+v", m)
	}
}

// Models of several families have their layers in the order in which data passes them.
func TestPlaces(t *testing.T) {
	for names, want := range map[string]string{
		"h.1.attn.weight h.0.attn.weight wte.weight ln_f.weight":                      "input h.0 h.1 output",
		"decoder.block.0.w encoder.block.0.w shared.embed":                            "input encoder.block.0 decoder.block.0",
		"layer2.0.conv1.weight layer1.1.conv1.weight layer1.0.conv1.weight fc.weight": "layer1.0 layer1.1 layer2.0 output",
		"classifier.6.weight features.0.weight features.10.weight features.3.weight":  "features.0 features.3 features.10 classifier.6",
		"2.weight 0.weight": "0 2",
		"bert.encoder.layer.0.w bert.embeddings.word_embeddings.weight bert.pooler.w":                                    "input bert.encoder.layer.0 output",
		"model.layers.0.mlp.experts.3.w1.weight":                                                                         "model.layers.0",
		"language_model.model.layers.0.w vision_tower.vision_model.encoder.layers.0.w multi_modal_projector.w lm_head.w": "vision_tower.vision_model.encoder.layers.0 language_model.model.layers.0 output",
	} {
		list := strings.Fields(names)
		var places []place
		for _, name := range list {
			places = append(places, placeOf(name))
		}
		slices.SortFunc(places, comparePlaces)
		var got []string
		for _, p := range slices.Compact(places) {
			got = append(got, p.name())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %s", names, got, want)
		}
	}
}

const one = `"dtype":"BF16","shape":[2],"data_offsets":[0,4]`

// hostileFiles are refused for a reason.
var hostileFiles = []struct {
	file   []byte
	reason string
}{
	{[]byte("1234567"), "it is truncated: it has 7 bytes"},
	{[]byte("\x00\x48\xe8\x01\x00\x00\x00\x00{}"), "it is truncated: its header needs 32000008 bytes and the file has 10"},
	{[]byte("\x01\x48\xe8\x01\x00\x00\x00\x00{}"), "its header has more than 32 MB"},
	{[]byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"), "its header has more than 32 MB"},
	{raw("", nil), "its header is not a JSON object"},
	{raw(" {}", nil), "its header is not a JSON object"},
	{raw("[]", nil), "its header is not a JSON object"},
	{raw(`{"a":{`+one+`}`, make([]byte, 4)), "its header is not a JSON object"},
	{raw(`{"a":{`+one+`}} {}`, make([]byte, 4)), "its header is not a JSON object"},
	{raw("{\"\xff\":{"+one+"}}", make([]byte, 4)), "its header is not a JSON object"},
	{raw(`{"__metadata__":{"a":1}}`, nil), "its header is not a JSON object"},
	{raw(`{"a":{`+one+`},"a":{`+one+`}}`, make([]byte, 4)), "the name a occurs twice"},
	{raw(`{"a":{`+one+`,"dtype":"F32"}}`, make([]byte, 4)), "the description of a must have"},
	{raw(`{"a":{`+one+`,"more":1}}`, make([]byte, 4)), "the description of a must have"},
	{raw(`{"a":{"dtype":"BF16","data_offsets":[0,4]}}`, make([]byte, 4)), "the description of a must have"},
	{raw(`{"a":{"dtype":"BF16","shape":[2],"data_offsets":[0]}}`, make([]byte, 4)), "the description of a must have"},
	{raw(`{"a":{"dtype":"BF16","shape":[2],"data_offsets":[4,0]}}`, make([]byte, 4)), "the offsets of a are not a range"},
	{raw(`{"a":{"dtype":"BF16","shape":[2],"data_offsets":[-4,0]}}`, make([]byte, 4)), "the offsets of a are not a range"},
	{raw(`{"a":{`+one+`}}`, make([]byte, 3)), "it is truncated: a ends at byte 4 of 3"},
	{raw(`{"a":{"dtype":"BF16","shape":[3],"data_offsets":[0,4]}}`, make([]byte, 4)), "a has 4 bytes, and its shape needs 6"},
	{raw(`{"a":{"dtype":"X","shape":[2],"data_offsets":[0,4]}}`, make([]byte, 4)), "the type or the shape of a is not valid"},
	{raw(`{"a":{"dtype":"F4","shape":[1],"data_offsets":[0,0]}}`, nil), "the type or the shape of a is not valid"},
	{raw(`{"a":{"dtype":"BF16","shape":[-1],"data_offsets":[0,0]}}`, nil), "the type or the shape of a is not valid"},
	{raw(`{"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, nil), "the type or the shape of a is not valid"},
	{raw(`{"a":{`+one+`},"b":{"dtype":"BF16","shape":[2],"data_offsets":[2,6]}}`, make([]byte, 6)), "the bytes of b overlap"},
	{raw(`{"a":{`+one+`},"b":{"dtype":"BF16","shape":[1],"data_offsets":[6,8]}}`, make([]byte, 8)), "there is a gap of 2 bytes before b"},
	{raw(`{"a":{`+one+`}}`, make([]byte, 9)), "there is a gap of 5 bytes after the last tensor"},
}

func TestHostileFiles(t *testing.T) {
	for _, c := range hostileFiles {
		_, err := ReadFile("a.safetensors", bytes.NewReader(c.file), int64(len(c.file)))
		if models.KindOf(err) != models.KindConflict || !strings.Contains(err.Error(), "The file a.safetensors is not valid: "+c.reason) {
			t.Errorf("%.60q: got %v, want %s", c.file, err, c.reason)
		}
	}
	fine := raw(`{"scalar":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"empty":{"dtype":"F32","shape":[0,9],"data_offsets":[0,0]}}    `, make([]byte, 4))
	if f, err := ReadFile("a.safetensors", bytes.NewReader(fine), int64(len(fine))); err != nil || f.Tensors[0].Name != "empty" || f.Tensors[1].Parameters != 1 {
		t.Errorf("got %+v, %v", f, err)
	}
}

// Folders are refused for a reason.
func TestHostileFolders(t *testing.T) {
	with := func(name, content string) fstest.MapFS {
		folder := llama(t)
		folder[name] = &fstest.MapFile{Data: []byte(content)}
		return folder
	}
	without := func(name string) fstest.MapFS {
		folder := llama(t)
		delete(folder, name)
		return folder
	}
	twice := fstest.MapFS{"a.safetensors": {Data: safetensors(t, tensorsOf{{"x", []int64{1}}})}, "b.safetensors": {Data: safetensors(t, tensorsOf{{"x", []int64{1}}})}}
	for reason, folder := range map[string]fstest.MapFS{
		"contains no tensors": {"weights.bin": {}},
		"The file b.safetensors is not valid: a.safetensors has a tensor x, too":         twice,
		"The file config.json is not valid: it is not a JSON object":                     with(configName, "[1]"),
		"../a.safetensors is not the name of a file in the folder":                       with(indexName, `{"weight_map":{"a":"../a.safetensors"}}`),
		"/etc/a.safetensors is not the name of a file":                                   with(indexName, `{"weight_map":{"a":"/etc/a.safetensors"}}`),
		`..\a.safetensors is not the name of a file`:                                     with(indexName, `{"weight_map":{"a":"..\\a.safetensors"}}`),
		"config.json is not the name of a file":                                          with(indexName, `{"weight_map":{"a":"config.json"}}`),
		"The file other.safetensors was not found.":                                      with(indexName, `{"weight_map":{"a":"other.safetensors"}}`),
		"the name a occurs twice":                                                        with(indexName, `{"weight_map":{"a":"x.safetensors","a":"y.safetensors"}}`),
		"it has no weight_map with names of files":                                       with(indexName, `{"weight_map":[]}`),
		"model-00001-of-00002.safetensors has no tensor other":                           with(indexName, `{"weight_map":{"other":"model-00001-of-00002.safetensors"}}`),
		"The file model-00002-of-00002.safetensors was not found.":                       without("model-00002-of-00002.safetensors"),
		"The file model-00001-of-00002.safetensors is not valid: it is truncated":        with("model-00001-of-00002.safetensors", "x"),
		"The file consolidated.safetensors is not valid: its header has more than 32 MB": without(indexName),
	} {
		_, err := Read(folder)
		if models.KindOf(err) != models.KindConflict || !strings.Contains(err.Error(), reason) {
			t.Errorf("got %v, want %s", err, reason)
		}
	}
	if m := read(t, without(configName)); m.Facts.Heads != 0 || m.Facts.Tensors != 35 {
		t.Errorf("got %+v", m.Facts)
	}
}

// FuzzRead reads any header, index and configuration: it is refused, or its tensors cover
// the file.
func FuzzRead(f *testing.F) {
	for _, c := range hostileFiles {
		f.Add(c.file, []byte(llamaConfig), []byte(`{"weight_map":{"a":"a.safetensors"}}`))
	}
	f.Add([]byte(llama(f)["model-00001-of-00002.safetensors"].Data), []byte(`{"text_config":{"text_config":{}},"num_experts":1e9,"n_head":[1]}`), []byte("{}"))
	f.Fuzz(func(t *testing.T, file, config, index []byte) {
		folder := fstest.MapFS{"a.safetensors": {Data: file}, configName: {Data: config}}
		for _, folder := range []fstest.MapFS{folder, {"a.safetensors": {Data: file}, configName: {Data: config}, indexName: {Data: index}}} {
			m, err := Read(folder)
			if err != nil && models.KindOf(err) != models.KindConflict {
				t.Fatal(err)
			}
			at := int64(0)
			for i, one := range m.Files {
				if at = one.Header; i > 0 {
					t.Fatalf("%v has more files than %v", m.Files, maps.Keys(folder))
				}
				for _, tensor := range one.Tensors {
					if tensor.From != at {
						t.Fatalf("%+v begins at %d", tensor, at)
					}
					at = tensor.Until
				}
				if at != int64(len(file)) {
					t.Fatalf("tensors end at %d of %d", at, len(file))
				}
			}
			if need := Memory(m.Facts, Load{MaxBatch, MaxContext}); need.Total < 0 || need.Total < m.Facts.Bytes {
				t.Fatalf("got %+v", need)
			}
		}
	})
}
