package shard

import (
	"path"
	"slices"

	"weir/models"
)

// Placed is a tensor and the file that it is in.
type Placed struct {
	File int // index in Model.Files
	Tensor
}

// Cut returns the tensors of each part of a plan, in the order of the files. Tensors that
// several parts need are in each of them. The error says why whole tensors cannot be divided
// like this.
func (m Model) Cut(plan models.ModelPlan) ([][]Placed, error) {
	if !plan.Possible {
		return nil, models.Conflict("The plan is not possible.")
	}
	if plan.Split == models.SplitHeads {
		return nil, models.Conflict("A split by attention heads cuts through tensors, so it cannot be written to files.")
	}
	if path.Ext(m.Files[0].Name) == onnxExtension {
		return nil, models.Conflict("A model in ONNX format can be planned only, and not written to files.")
	}
	parts := make([][]Placed, len(plan.Parts))
	for i, f := range m.Files {
		for _, t := range f.Tensors {
			for n := range plan.Parts {
				has, err := m.has(plan, n, t)
				if err != nil {
					return nil, err
				}
				if has {
					parts[n] = append(parts[n], Placed{i, t})
				}
			}
		}
	}
	return parts, nil
}

// has reports whether a part of a plan needs a tensor.
func (m Model) has(plan models.ModelPlan, part int, t Tensor) (bool, error) {
	within := func(item int) bool { return plan.Parts[part].From <= item && item < plan.Parts[part].Until }
	if plan.Split == models.SplitExperts {
		expert, ofExpert := expertOf(t.Name)
		if ofExpert && expert < 0 {
			return false, models.Conflict("%s has all experts of a layer, so experts cannot be divided into files.", models.VisibleName(t.Name))
		}
		return !ofExpert || within(int(expert)), nil
	}
	at := placeOf(t.Name)
	return within(m.layers[at]) || m.Facts.Tied && at.kind == models.LayerInput && within(len(m.Facts.Layers)-1), nil
}

// Range is consecutive bytes of a file.
type Range struct {
	File        int
	From, Until int64
}

// Ranges are the bytes of tensors, with those that follow on each other as one.
func Ranges(list []Placed) (ranges []Range) {
	for _, t := range list {
		if last := len(ranges) - 1; last >= 0 && ranges[last].File == t.File && ranges[last].Until == t.From {
			ranges[last].Until = t.Until
		} else if t.Bytes() > 0 {
			ranges = append(ranges, Range{t.File, t.From, t.Until})
		}
	}
	return slices.Clip(ranges)
}
