package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"weir/models"
	"weir/workspaces/graph"
	"weir/workspaces/onnx/execution"
)

// isONNX reports whether a file is a model in ONNX format by its name.
func isONNX(name string) bool { return strings.EqualFold(filepath.Ext(name), ".onnx") }

// readONNX reads the graph of a model. Which operators have no known time is told.
func readONNX(name string, told io.Writer) (g graph.Graph, err error) {
	file, m, err := execution.Open(name)
	if err != nil {
		return g, err
	}
	defer file.Close()
	g, unknown, why := m.Graph()
	if !why.Empty() {
		return g, models.Invalid("graph", "%s", why)
	}
	tellUnknown(told, unknown)
	return g, g.Check()
}

// tellUnknown names the kinds of operators whose operations are not known.
func tellUnknown(told io.Writer, kinds []string) {
	if len(kinds) > 0 {
		fmt.Fprintf(told, "weir: not all operations are known of %s; those count as the mean of the others\n", strings.Join(kinds, ", "))
	}
}
