package shard

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"weir/models"
)

const (
	extension     = ".safetensors"
	onnxExtension = ".onnx"
)

// Is reports whether a folder with files of these names can be a model.
func Is(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return path.Ext(name) == extension || path.Ext(name) == onnxExtension })
}

// IsName reports whether a text is the name of a file with tensors in the folder itself.
func IsName(name string) bool {
	return path.Base(name) == name && fs.ValidPath(name) && !strings.Contains(name, `\`) && path.Ext(name) == extension
}

func notName(name string) models.Text {
	return models.Say("%s is not the name of a file in the folder that ends with .safetensors", models.VisibleName(name))
}

// IsONNX reports whether a file is a model in ONNX format by its name.
func IsONNX(name string) bool { return path.Ext(name) == onnxExtension }
