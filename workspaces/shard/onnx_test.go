package shard

import (
	"strings"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/encoding/protowire"

	"weir/models"
)

// initializer is a matrix of an ONNX model, of n·2 values of a type with some raw bytes.
func initializer(name string, kind, n, raw int) []byte {
	var m []byte
	for _, size := range []int{n, 2} {
		m = protowire.AppendVarint(protowire.AppendTag(m, 1, protowire.VarintType), uint64(size))
	}
	m = protowire.AppendVarint(protowire.AppendTag(m, 2, protowire.VarintType), uint64(kind))
	m = protowire.AppendBytes(protowire.AppendTag(m, 8, protowire.BytesType), []byte(name))
	return protowire.AppendBytes(protowire.AppendTag(m, 9, protowire.BytesType), make([]byte, raw))
}

func onnxModel(initializers ...[]byte) *fstest.MapFile {
	graph := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte{0x22, 4, 'R', 'e', 'l', 'u'})
	for _, one := range initializers {
		graph = protowire.AppendBytes(protowire.AppendTag(graph, 5, protowire.BytesType), one)
	}
	return &fstest.MapFile{Data: protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), graph)}
}

// A model in ONNX format is described and planned by its initializers, and not written to files.
func TestReadONNX(t *testing.T) {
	folder := fstest.MapFS{"model.onnx": onnxModel(initializer("layers.0.w", 1, 50, 400), initializer("layers.1.w", 10, 60, 0), initializer("fc", 1, 10, 80))}
	m, err := Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	if f := m.Facts; f.Parameters != 240 || f.Bytes != 400+240+80 || len(f.Layers) != 3 || f.Layers[1].Name != "layers.1" || f.Types[0].Type != "F32" {
		t.Errorf("%+v", f)
	}
	device := models.ModelDevice{MemoryBytes: 600, TFLOPS: 1}
	plan, err := Plan(m.Facts, Request{Load: Load{1, 1}, Devices: []models.ModelDevice{device, device},
		Presets: []Preset{{ServiceType: "sequential", Split: models.SplitLayers, Combine: models.CombinePassOn}}})
	if err != nil || !plan.Possible || len(plan.Parts) != 2 {
		t.Fatalf("%+v, %v", plan, err)
	}
	if _, err := m.Cut(plan); models.KindOf(err) != models.KindConflict {
		t.Errorf("its parts are cut: %v", err)
	}
	twice := fstest.MapFS{"model.onnx": folder["model.onnx"], "model_quantized.onnx": onnxModel(initializer("layers.0.w", 3, 50, 100))}
	if m, err = Read(twice); err != nil || m.Facts.Files != 1 || m.Facts.Bytes != 400+240+80 || !strings.Contains(m.Note.String(), "has 2 models in ONNX format; only model.onnx is read") {
		t.Errorf("of two models: %+v, %v", m.Facts, err)
	}
	delete(twice, "model.onnx")
	twice["model_fp16.onnx"] = twice["model_quantized.onnx"]
	if _, err = Read(twice); err == nil || !strings.Contains(err.Error(), "has a tensor layers.0.w, too") {
		t.Errorf("of two precisions: %v", err)
	}
	packed, err := Read(fstest.MapFS{"m.onnx": onnxModel(initializer("w", 22, 3, 3), initializer("c", 15, 1, 32), initializer("s", 8, 2, 0))})
	if f := packed.Facts; err != nil || f.Parameters != 6+2+4 || f.Bytes != 3+32 {
		t.Errorf("packed values: %+v, %v", f, err)
	}
	for reason, one := range map[string][]byte{"the type or the shape of x": initializer("x", 1, 5, 39), "shape of text": initializer("text", 8, 1, 1),
		"shape of huge": initializer("huge", 1, 1<<60, 0), "shape of sum": initializer("sum", 1, 1<<57, 0)} {
		if _, err := Read(fstest.MapFS{"m.onnx": onnxModel(initializer("first", 1, 1<<57, 0), one)}); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", reason, err)
		}
	}
	if _, err := Read(fstest.MapFS{"m.onnx": {Data: []byte("{}")}}); err == nil || !strings.Contains(err.Error(), "it is not a model in ONNX format") {
		t.Errorf("got %v", err)
	}
}
