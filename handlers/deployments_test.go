package handlers

import (
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// smallModel is a safetensors file of layers with 32 KiB each.
func smallModel(layers int) string {
	var header []string
	for i := range layers {
		header = append(header, fmt.Sprintf(`"model.layers.%d.self_attn.q_proj.weight":{"dtype":"BF16","shape":[128,128],"data_offsets":[%d,%d]}`, i, i<<15, (i+1)<<15))
	}
	text := "{" + strings.Join(header, ",") + "}"
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(text)))) + text + strings.Repeat("w", layers<<15)
}

// A model is described by page and by program, from the same files and under the same rights.
func TestModelFacts(t *testing.T) {
	w := newWorld(t)
	api, page := w.filesOf("/model", "/llama"), w.filesPage("/model", "/llama")
	ann := w.as("ann@example.org")
	w.member = w.token("ann@example.org") // signing in has ended the other one
	w.want(201, w.member, "POST", "/projects/"+id(w.project)+"/files/directories", `{"path":"`+w.modelPath("/llama")+`"}`)
	w.want(409, w.member, "GET", api, "")
	ann.shows(ann.page(409, "GET", page), "The folder contains no tensors in files that end with .safetensors or .onnx.")
	w.want(200, w.member, "PUT", w.filesOf("/content", "/llama/model.safetensors"), smallModel(64))
	w.want(200, w.member, "PUT", w.filesOf("/content", "/llama/config.json"), `{"architectures":["LlamaForCausalLM"],"hidden_size":128,"num_attention_heads":4,"vocab_size":1000}`)

	a := w.get(w.member, api)
	plan := a.body["plan"].(map[string]any)
	if facts := a.body["facts"].(map[string]any); facts["parameters"] != float64(64<<14) || facts["attention_heads"] != 4.0 || len(facts["layers"].([]any)) != 64 || a.body["path"] != w.modelPath("/llama") {
		t.Errorf("%s", a.raw)
	}
	if memory := a.body["memory"].(map[string]any); memory["weights_bytes"] != float64(64<<15) || memory["kv_cache_bytes"] != float64(2*64*4*32*4096*2) || memory["context"] != 4096.0 {
		t.Errorf("%s", a.raw)
	}
	if plan["possible"] != true || plan["split"] != "none" || len(a.body["devices"].([]any)) != 2 || !strings.Contains(fmt.Sprint(plan["reasons"]), "one device is enough") {
		t.Errorf("%s", a.raw)
	}
	stated := "&context=1000&device=28MiB&device=16MiB:50"
	plan = w.get(w.member, api+stated).body["plan"].(map[string]any)
	if parts := plan["parts"].([]any); plan["service_type"] != "text-generation" || plan["combine"] != "pass_on" || len(parts) != 2 || parts[0].(map[string]any)["total_bytes"].(float64) < parts[1].(map[string]any)["total_bytes"].(float64) {
		t.Errorf("%v", plan)
	}
	if a := w.get(w.member, api+"&cores=25"); !strings.Contains(a.raw, `"tflops":25,`) {
		t.Errorf("the speed is not that of the cores: %s", a.raw)
	}
	for query, field := range map[string]string{"&device=much": "device", "&service_type=none": "service_type", "&batch=0": "batch", "&context=-1": "context", "&cores=0": "cores"} {
		if fields := w.problem(w.want(422, w.member, "GET", api+query, "")); fields[field] == "" && fields["query."+field] == "" {
			t.Errorf("%s: %v", query, fields)
		}
	}

	ann.shows(ann.page(200, "GET", w.filesPage("", "/llama")), "/files/model?path="+w.modelPath("/llama"), ">Model<")
	ann.shows(ann.page(200, "GET", page), "LlamaForCausalLM", "1.05 M", "fits on one GPU", "one device is enough", "model.layers.63", ">simulated<")
	form := page + "&" + url.Values{"batch": {"1"}, "context": {"1000"}, "device": {"28MiB, 16MiB:50"}}.Encode()
	ann.shows(ann.page(200, "GET", form), "fits on 2 GPUs", "It is split as the service type text-generation.", "model.layers.0 to model.layers.", `value="28MiB, 16MiB:50"`)
	ann.shows(ann.page(200, "GET", page+"&device=1MiB"), "does not fit", "do not have enough memory")
	w.want(200, w.member, "PUT", w.filesOf("/content", "/llama/config.json"),
		`{"architectures":["LlamaForCausalLM"],"hidden_size":128,"num_attention_heads":4,"vocab_size":1000,"max_position_embeddings":512}`)
	if a := w.get(w.member, api); a.body["memory"].(map[string]any)["context"] != 512.0 {
		t.Errorf("it is planned for more tokens than it can have: %s", a.raw)
	}
	ann.shows(ann.page(200, "GET", page), "It is planned for 512 tokens, the longest context of the model.")
	ann.shows(ann.page(200, "GET", page+"&cores=25"), `value="25"`)
	ann.shows(ann.page(422, "GET", page+"&cores=101"), `id="f-cores-error"`, "must be from 1 to 100")
	ann.shows(ann.page(422, "GET", page+"&device=much"), `id="f-device-error"`, "must be memory such as 24GiB")
	ann.shows(ann.page(422, "GET", page+"&service_type=mixture-of-experts"), `id="f-service_type-error"`, "does not suit this model")

	w.want(404, w.stranger, "GET", api, "")
	w.want(200, w.member, "PUT", w.filesOf("/content", "/llama/model.safetensors"), smallModel(2)+"more")
	ann.shows(ann.page(409, "GET", page), "The file model.safetensors is not valid: there is a gap of 4 bytes after the last tensor")
}
