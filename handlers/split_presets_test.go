package handlers

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// longNames are names of layers that are each allowed, and too long together.
func longNames() (names []string) {
	for i := range 100 {
		names = append(names, fmt.Sprint(strings.Repeat("a", 190), i))
	}
	return names
}

// A split that a member has described is offered for the next model of the architecture, by page and by
// program, and for no other: the model is cut before the named layers and nowhere else.
func TestSplitPresets(t *testing.T) {
	w := newWorld(t)
	at, page := "/projects/"+id(w.project)+"/split-presets", "/projects/"+id(w.project)+"/split-presets"
	ann := w.as("ann@example.org")
	w.member = w.token("ann@example.org") // signing in has ended the other one
	for dir, architecture := range map[string]string{"detector": "DetrForObjectDetection", "next": "DetrForObjectDetection", "other": "ResNetModel"} {
		w.want(201, w.member, "POST", "/projects/"+id(w.project)+"/files/directories", `{"path":"`+w.modelPath("/"+dir)+`"}`)
		w.want(200, w.member, "PUT", w.filesOf("/content", "/"+dir+"/model.safetensors"), smallModel(64))
		w.want(200, w.member, "PUT", w.filesOf("/content", "/"+dir+"/config.json"), `{"architectures":["`+architecture+`"],"hidden_size":128,"num_attention_heads":4}`)
	}
	ann.shows(ann.page(200, "GET", w.filesPage("/model", "/detector")), page+"?architecture=DetrForObjectDetection")
	ann.shows(ann.page(200, "GET", page+"?architecture=DetrForObjectDetection"), "No split presets.", `value="DetrForObjectDetection"`)

	for body, field := range map[string]string{
		`{"service_type":"","split":"layers","combine":"pass_on"}`:                                                      "service_type",
		`{"service_type":" ","split":"layers","combine":"pass_on"}`:                                                     "service_type",
		`{"service_type":"sequential","split":"layers","combine":"pass_on"}`:                                            "service_type",
		`{"service_type":"d","split":"none","combine":"pass_on"}`:                                                       "split",
		`{"service_type":"d","split":"layers","combine":"pass_on","cuts":["` + strings.Join(longNames(), `","`) + `"]}`: "cuts",
		`{"service_type":"d","split":"layers","combine":"none"}`:                                                        "combine",
		`{"service_type":"d","split":"heads","combine":"sum","cuts":["a"]}`:                                             "cuts",
		`{"service_type":"d","split":"layers","combine":"pass_on","cuts":[" "]}`:                                        "cuts",
		`{"service_type":"d","split":"layers","combine":"pass_on","cuts":["a\u202eb"]}`:                                 "cuts",
		`{"service_type":"d","split":"layers","combine":"pass_on","architecture":"a\u0007"}`:                            "architecture",
	} {
		if fields := w.problem(w.want(422, w.member, "POST", at, body)); fields[field] == "" {
			t.Errorf("%s: %v", body, fields)
		}
	}
	ann.shows(ann.page(422, "POST", page, "service_type", "sequential", "split", "layers", "combine", "pass_on"), "is already a service type", `id="f-service_type-error"`)
	ann.page(303, "POST", page, "service_type", "Detector", "architecture", "DetrForObjectDetection", "split", "layers", "combine", "pass_on",
		"cuts", "model.layers.8, model.layers.40 model.layers.8")
	ann.shows(ann.page(200, "GET", page), "Detector", "between layers", "passed on", "model.layers.8, model.layers.40")
	items := w.get(w.member, at).body["items"].([]any)
	if one := items[0].(map[string]any); len(items) != 1 || one["service_type"] != "Detector" || fmt.Sprint(one["cuts"]) != "[model.layers.8 model.layers.40]" {
		t.Fatalf("%v", items)
	}
	w.want(422, w.member, "POST", at, `{"service_type":"Detector","split":"layers","combine":"pass_on"}`)

	planned := "&context=1000&service_type=Detector&device=28MiB&device=28MiB&device=28MiB"
	report := w.get(w.member, w.filesOf("/model", "/next")+planned).body
	plan := report["plan"].(map[string]any)
	var begins []string
	for _, p := range plan["parts"].([]any) {
		begins = append(begins, p.(map[string]any)["first"].(string))
	}
	if plan["service_type"] != "Detector" || !slices.Equal(begins, []string{"model.layers.0", "model.layers.8", "model.layers.40"}) &&
		!slices.Equal(begins, []string{"model.layers.0", "model.layers.40"}) {
		t.Errorf("the parts begin at %v: %v", begins, plan)
	}
	if !slices.Contains(report["service_types"].([]any), any("Detector")) {
		t.Errorf("%v are offered", report["service_types"])
	}
	ann.shows(ann.page(200, "GET", w.filesPage("/model", "/next")+planned), "It is split as the service type Detector.", "It may be cut before model.layers.8, model.layers.40.",
		`<option value="Detector" selected`)
	ann.shows(ann.page(422, "GET", w.filesPage("/model", "/next")+"&service_type=Detector&device=much"), `<option value="Detector" selected`)
	if strings.Contains(ann.page(200, "GET", w.filesPage("/model", "/other")), "Detector") {
		t.Error("it is offered for another architecture")
	}
	w.want(422, w.member, "GET", w.filesOf("/model", "/other")+planned, "")
	w.want(200, w.member, "PUT", w.filesOf("/content", "/next/model.safetensors"), smallModel(20))
	if fields := w.problem(w.want(422, w.member, "GET", w.filesOf("/model", "/next")+planned, "")); !strings.Contains(fields["service_type"], "it has no layer model.layers.40") {
		t.Errorf("%v", fields)
	}

	one := "/" + id(int64(items[0].(map[string]any)["id"].(float64)))
	w.want(404, w.stranger, http.MethodDelete, at+one, "")
	ann.page(303, "POST", page+one+"/delete")
	w.want(404, w.member, http.MethodDelete, at+one, "")
	w.want(422, w.member, "GET", w.filesOf("/model", "/detector")+planned, "")
}
