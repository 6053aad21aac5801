package handlers

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// smallONNX is a model of operators such as "MatMul: x w -> y", with x of 64 by 64.
func smallONNX(operators ...string) string {
	message := func(to []byte, n protowire.Number, content string) []byte {
		return protowire.AppendString(protowire.AppendTag(to, n, protowire.BytesType), content)
	}
	var graph []byte
	for _, text := range operators {
		op, values, _ := strings.Cut(text, ": ")
		in, out, _ := strings.Cut(values, " -> ")
		var node []byte
		for _, name := range strings.Fields(in) {
			node = message(node, 1, name)
		}
		graph = message(graph, 1, string(message(message(node, 2, out), 4, op)))
	}
	shape := message(message(nil, 1, "\x08\x40"), 1, "\x08\x40")
	kind := message(nil, 1, string(message([]byte{8, 1}, 2, string(shape))))
	graph = message(graph, 11, string(message(message(nil, 1, "x"), 2, string(kind))))
	return string(message(nil, 7, string(message(graph, 2, "attention"))))
}

// The graph of a model is planned by page and by program, under the rights of the file.
func TestModelGraphs(t *testing.T) {
	w := newWorld(t)
	api, page := w.filesOf("/graph", "/vision.onnx"), w.filesPage("/graph", "/vision.onnx")
	ann := w.as("ann@example.org")
	w.member = w.token("ann@example.org") // signing in has ended the other one
	w.want(404, w.member, "GET", api+"&cpus=8", "")
	ann.page(404, "GET", page)
	content := smallONNX("Relu: x -> a", "MatMul: a x -> q", "MatMul: a x -> k", "Relu: k -> r", "Add: q r -> s", "Strange: s -> z")
	w.want(200, w.member, "PUT", w.filesOf("/content", "/vision.onnx"), content)

	a := w.get(w.member, api+"&cpus=8&utilization=20")
	plan, kinds := a.body["plan"].(map[string]any), a.body["kinds"].([]any)
	if a.body["operators"] != 6.0 || a.body["name"] != "attention" || a.body["path"] != w.modelPath("/vision.onnx") || len(a.body["branches"].([]any)) != 4 ||
		a.body["flops"] != float64(2*2*64*64*64+3*64*64) || fmt.Sprint(a.body["unknown"]) != "[Strange]" {
		t.Errorf("%s", a.raw)
	}
	if first := kinds[0].(map[string]any); first["kind"] != "MatMul" || first["operators"] != 2.0 || plan["mode"] != "parallel" || plan["budget"] != 6.0 || plan["relative"] != true || len(plan["stages"].([]any)) != 3 {
		t.Errorf("%s", a.raw)
	}
	if plan = w.get(w.member, api+"&cpus=8&utilization=90").body["plan"].(map[string]any); plan["mode"] != "serial" {
		t.Errorf("%v", plan)
	}
	for query, field := range map[string]string{"": "cpus", "&cpus=0": "cpus", "&cpus=1025": "cpus", "&cpus=8&utilization=101": "utilization", "&cpus=8&second_threshold=80": "second_threshold", "&cpus=8&serial_cpus=7": "serial_cpus"} {
		if fields := w.problem(w.want(422, w.member, "GET", api+query, "")); fields[field] == "" && fields["query."+field] == "" {
			t.Errorf("%s: %v", query, fields)
		}
	}

	ann.shows(ann.page(200, "GET", w.filesPage("", "")), "/files/graph?path="+w.modelPath("/vision.onnx"), ">Task graph<")
	ann.shows(ann.page(200, "GET", w.filesPage("/entry", "/vision.onnx")), ">Task graph<")
	ann.shows(ann.page(200, "GET", page), "Task graph of vision.onnx", "1 × MatMul, 1 × Relu", "1.05 M", "Plan of attention", "Branches run in parallel.", "second threshold 50%", "After MatMul 2, MatMul 3.",
		"Not all floating-point operations are known of Strange.", "Times are ratios")
	ann.shows(ann.page(200, "GET", page+"&cpus=8&utilization=90&first_threshold=80"), "Operators run one after another.", `value="90"`)
	ann.shows(ann.page(422, "GET", page+"&cpus=8&utilization=x"), `id="f-utilization-error"`)
	ann.shows(ann.page(422, "GET", page+"&cpus=8&serial_cpus=7"), `id="f-serial_cpus-error"`)

	measured := w.filesOf("/content", "/vision.times.yaml")
	w.want(200, w.member, "PUT", measured, "MatMul 2: {MatMul 2: 3}\nMatMul 3: {branch of 2: 4}\n")
	if a = w.get(w.member, api+"&cpus=8"); a.body["times"] != w.modelPath("/vision.times.yaml") || a.body["plan"].(map[string]any)["relative"] != false {
		t.Errorf("%s", a.raw)
	}
	ann.shows(ann.page(200, "GET", page), "Times are those that were measured in an earlier run:", "3.0\u00a0s", "4.0\u00a0s", "!Times are ratios")
	w.want(200, w.member, "PUT", measured, "- 1")
	ann.shows(ann.page(200, "GET", page), "Measured times are not used.", "The file vision.times.yaml has no measured times in YAML.", "Times are ratios")
	if a = w.get(w.member, api+"&cpus=8"); a.body["times"] != nil || a.body["times_unused"] != "The file vision.times.yaml has no measured times in YAML." {
		t.Errorf("%s", a.raw)
	}
	w.want(200, w.member, "PUT", measured, strings.Repeat("# no times\n", 12_000))
	ann.shows(ann.page(200, "GET", page), "Measured times are not used.", "131072 bytes")
	w.want(200, w.member, "PUT", measured, "Other: {Relu: 3}")
	ann.shows(ann.page(200, "GET", page), "!Times are those", "Times are ratios")

	w.want(404, w.stranger, "GET", api+"&cpus=8", "")
	for content, says := range map[string]string{smallONNX("Relu: y -> y"): "the model has a circle", "not a model": "it is not a model in ONNX format",
		smallONNX(strings.Split(strings.Repeat("Relu: x -> y\n", 50_001), "\n")[:50_001]...): "must have from 1 to 50000 branches; has 50001"} {
		w.want(200, w.member, "PUT", w.filesOf("/content", "/vision.onnx"), content)
		ann.shows(ann.page(409, "GET", page), says)
	}
	w.want(200, w.member, "PUT", w.filesOf("/content", "/notes.txt"), content)
	ann.shows(ann.page(409, "GET", w.filesPage("/graph", "/notes.txt")), "its name does not end with .onnx")
}
