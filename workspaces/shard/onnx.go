package shard

import (
	"io"

	"weir/models"
	"weir/workspaces/onnx"
)

// onnxTypes are the names that safetensors has for the types of ONNX (TensorProto.DataType).
var onnxTypes = map[int64]string{1: "F32", 2: "U8", 3: "I8", 4: "U16", 5: "I16", 6: "I32", 7: "I64", 9: "BOOL", 10: "F16", 11: "F64",
	12: "U32", 13: "U64", 14: "C64", 16: "BF16", 17: "F8_E4M3", 18: "F8_E4M3FNUZ", 19: "F8_E5M2", 20: "F8_E5M2FNUZ", 23: "F4"}

// readONNX reads the initializers of a model in ONNX format. Their bytes are counted by type
// and shape: they can be in another file.
func readONNX(name string, r io.ReaderAt, size int64) (File, error) {
	f := File{Name: name, Size: size}
	m, why, err := onnx.Read(r, size)
	if err != nil {
		return f, err
	}
	if !why.Empty() {
		return f, refuse(name, why)
	}
	total := int64(0)
	for _, t := range m.Tensors {
		one := Tensor{Name: t.Name, Type: onnxTypes[t.Type], Shape: t.Shape}
		parameters, bytes, ok := sizeOf(one.Type, t.Shape)
		stored := t.Until - t.From
		if total = sum(total, bytes); !ok || total == enough || stored > 0 && stored != bytes {
			return f, refuse(name, models.Say("the type or the shape of %s is not valid", models.VisibleName(t.Name)))
		}
		one.Parameters, one.Until = parameters, bytes
		f.Tensors = append(f.Tensors, one)
	}
	return f, nil
}
