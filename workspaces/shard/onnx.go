package shard

import (
	"io"

	"weir/models"
	"weir/workspaces/onnx"
)

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
		parameters, bytes, ok := t.Size()
		if total = sum(total, bytes); !ok || total == enough {
			return f, refuse(name, models.Say("the type or the shape of %s is not valid", models.VisibleName(t.Name)))
		}
		f.Tensors = append(f.Tensors, Tensor{Name: t.Name, Type: t.TypeName(), Shape: t.Shape, Until: bytes, Parameters: parameters})
	}
	return f, nil
}
