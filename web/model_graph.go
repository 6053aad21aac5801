package web

import (
	"context"
	"fmt"
	"strings"

	"weir/models"
)

// ModelGraphView is the page of a model in ONNX format; Directory is the file.
//
// Fields: those of the machine in GraphsView.
type ModelGraphView struct {
	FilesView
	Form  Form
	Graph models.ModelGraph
	Done  bool // there is a plan
}

// branches are those of the model, by their names.
func (v ModelGraphView) branches() map[string]models.ModelBranch {
	known := make(map[string]models.ModelBranch, len(v.Graph.Branches))
	for _, b := range v.Graph.Branches {
		known[b.Branch] = b
	}
	return known
}

// graphOperators are the operators of a branch in words: those of a model by kind.
func graphOperators(ctx context.Context, share models.GraphShare, known map[string]models.ModelBranch) string {
	names := share.Operators
	if known != nil {
		names = nil
		for _, k := range known[share.Branch].Kinds {
			names = append(names, fmt.Sprintf("%d × %s", k.Operators, k.Kind))
		}
	}
	return firstNames(ctx, names)
}

// namesMost is how many names are listed in a sentence.
const namesMost = 12

// firstNames are the first of some names, and how many more there are.
func firstNames(ctx context.Context, names []string) string {
	if more := len(names) - namesMost; more > 0 {
		return T(ctx, "%s and %d more", strings.Join(names[:namesMost], ", "), more)
	}
	return strings.Join(names, ", ")
}

// flops formats a number of floating-point operations with three digits: 8.21 G.
func flops(n float64) string {
	units := []string{"", " K", " M", " G", " T", " P", " E"}
	unit := 0
	for ; n >= 1000 && unit < len(units)-1; unit++ {
		n /= 1000
	}
	return fmt.Sprintf("%.3g%s", n, units[unit])
}
