package shard

import (
	"path"

	"weir/models"
)

// Cut returns the tensors of each part of a plan, in the order of the files. Tensors that
// several parts need are in each of them. The error says why the tensors cannot be divided
// like this.
func (m Model) Cut(plan models.ModelPlan) ([][]Placed, error) {
	if !plan.Possible {
		return nil, models.Conflict("The plan is not possible.")
	}
	if path.Ext(m.Files[0].Name) == onnxExtension {
		return nil, models.Conflict("A model in ONNX format can be planned only, and not written to files.")
	}
	parts := make([][]Placed, len(plan.Parts))
	for i, f := range m.Files {
		for _, t := range f.Tensors {
			for n := range plan.Parts {
				p, has, err := m.place(plan, n, Placed{File: i, Tensor: t})
				if err != nil {
					return nil, err
				}
				if has {
					parts[n] = append(parts[n], p)
				}
			}
		}
	}
	return parts, nil
}

// place returns what a part of a plan has of a tensor; false if it has nothing.
func (m Model) place(plan models.ModelPlan, part int, p Placed) (Placed, bool, error) {
	within := func(item int) bool { return plan.Parts[part].From <= item && item < plan.Parts[part].Until }
	switch plan.Split {
	case models.SplitHeads:
		err := p.divide(int64(plan.Parts[part].From), int64(plan.Parts[part].Until), m.Facts.KVHeads)
		return p, true, err
	case models.SplitExperts:
		expert, ofExpert := expertOf(p.Name)
		if ofExpert && expert < 0 {
			return p, false, models.Conflict("%s has all experts of a layer, so experts cannot be divided into files.", models.VisibleName(p.Name))
		}
		return p, !ofExpert || within(int(expert)), nil
	default:
		at := placeOf(p.Name)
		return p, within(m.layers[at]) || m.Facts.Tied && at.kind == models.LayerInput && within(len(m.Facts.Layers)-1), nil
	}
}
