package shard

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"weir/models"
)

// Model is the files of a model and what they say.
type Model struct {
	Files  []File // in the order of their names
	Config Config
	Facts  models.ModelFacts

	// Note says that other models of the folder were not read; empty if there are none.
	Note models.Text

	layers map[place]int // numbers of the layers
}

// place is where a tensor belongs in the order in which data passes a model.
type place struct {
	kind  string
	stack string // what is before the number of the layer
	layer int64
}

// inputWords are parts of names of tensors before the first layer.
var inputWords = []string{"embed", "wte", "wpe", "stem", "patch"}

// placeOf finds the layer of a tensor: the first number in its name, which is the number of
// the layer in its stack, such as 3 in model.layers.3.mlp.experts.7.w1.weight.
func placeOf(name string) place {
	parts := strings.Split(name, ".")
	for i, part := range parts[:len(parts)-1] {
		if n, err := strconv.ParseInt(part, 10, 32); err == nil && n >= 0 {
			return place{models.LayerInner, strings.Join(parts[:i], "."), n}
		}
	}
	for _, word := range inputWords {
		if strings.Contains(strings.ToLower(name), word) {
			return place{kind: models.LayerInput}
		}
	}
	return place{kind: models.LayerOutput}
}

// stackOrder puts stacks that encode first and those that decode or classify last.
func stackOrder(stack string) int {
	for _, word := range []string{"vision", "visual", "encoder", "features"} {
		if strings.Contains(stack, word) {
			return 0
		}
	}
	for _, word := range []string{"decoder", "classifier", "head"} {
		if strings.Contains(stack, word) {
			return 2
		}
	}
	return 1
}

func kindOrder(kind string) int {
	return slices.Index([]string{models.LayerInput, models.LayerInner, models.LayerOutput}, kind)
}

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(kindOrder(a.kind), kindOrder(b.kind)), cmp.Compare(stackOrder(a.stack), stackOrder(b.stack)),
		cmp.Compare(a.stack, b.stack), cmp.Compare(a.layer, b.layer))
}

func (p place) name() string {
	switch {
	case p.kind != models.LayerInner:
		return p.kind
	case p.stack == "":
		return strconv.FormatInt(p.layer, 10)
	default:
		return models.VisibleName(p.stack) + "." + strconv.FormatInt(p.layer, 10)
	}
}

// expertOf is the number of the expert to which a tensor belongs; false if it belongs to
// none. A tensor of all experts at once has the number -1.
func expertOf(name string) (int64, bool) {
	parts := strings.Split(name, ".")
	at := slices.Index(parts, "experts")
	if at < 0 {
		return 0, false
	}
	if at+1 < len(parts) {
		if n, err := strconv.ParseInt(parts[at+1], 10, 32); err == nil && n >= 0 {
			return n, true
		}
	}
	return -1, true
}

// facts sums up the tensors by layer and by type.
func (m *Model) facts() models.ModelFacts {
	f := models.ModelFacts{Files: len(m.Files)}
	m.Config.apply(&f)
	layers, types, experts := map[place]*models.ModelLayer{}, map[string]*models.ModelType{}, int64(0)
	var order []place
	for _, file := range m.Files {
		for _, t := range file.Tensors {
			at := placeOf(t.Name)
			if layers[at] == nil {
				layers[at], order = &models.ModelLayer{Name: at.name(), Kind: at.kind}, append(order, at)
			}
			addToLayer(layers[at], t)
			if types[t.Type] == nil {
				types[t.Type] = &models.ModelType{Type: t.Type}
			}
			kind := types[t.Type]
			kind.Tensors, kind.Parameters, kind.Bytes = kind.Tensors+1, sum(kind.Parameters, t.Parameters), kind.Bytes+t.Bytes()
			f.Tensors, f.Parameters, f.Bytes = f.Tensors+1, sum(f.Parameters, t.Parameters), f.Bytes+t.Bytes()
			if n, _ := expertOf(t.Name); n >= experts {
				experts = n + 1
			}
		}
	}
	if f.Experts == 0 && experts > 1 {
		f.Experts = experts
	}
	slices.SortFunc(order, comparePlaces)
	m.layers = map[place]int{}
	for i, at := range order {
		m.layers[at], f.Layers = i, append(f.Layers, *layers[at])
	}
	for _, kind := range types {
		f.Types = append(f.Types, *kind)
	}
	slices.SortFunc(f.Types, func(a, b models.ModelType) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Type, b.Type))
	})
	if len(f.Types) > 0 && f.Types[0].Type == "F32" { // config.json need not say so
		f.ValueBytes = max(f.ValueBytes, 4)
	}
	return f
}

func addToLayer(l *models.ModelLayer, t Tensor) {
	l.Tensors, l.Parameters, l.Bytes = l.Tensors+1, sum(l.Parameters, t.Parameters), l.Bytes+t.Bytes()
	if _, ofExpert := expertOf(t.Name); ofExpert {
		l.ExpertParameters, l.ExpertBytes = sum(l.ExpertParameters, t.Parameters), l.ExpertBytes+t.Bytes()
	} else if len(t.Shape) == 2 || len(t.Shape) > 2 && t.Shape[0] > 1 {
		l.MatrixParameters, l.MatrixBytes = sum(l.MatrixParameters, t.Parameters), l.MatrixBytes+t.Bytes()
	}
}
