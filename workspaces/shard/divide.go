package shard

import (
	"slices"
	"strings"

	"weir/models"
)

// rowsAndColumns are the matrices that a split by attention heads divides: axis 0, rows, where
// a part computes some of the results from everything, and axis 1, columns, where it computes a
// summand of all results from what it has. This is the division of Megatron-LM (Shoeybi et al.,
// 2019, https://arxiv.org/abs/1909.08053, section 3).
var rowsAndColumns = map[string]int{"q_proj": 0, "k_proj": 0, "v_proj": 0, "o_proj": 1, "gate_proj": 0, "up_proj": 0, "down_proj": 1,
	"embed_tokens": 0, "lm_head": 0}

// divide makes of a whole tensor the rows or columns for the heads from until until of so many;
// what is not a matrix is on every part. The error is a conflict.
func (p *Placed) divide(from, until, heads int64) error {
	words := strings.Split(p.Name, ".")
	last := words[len(words)-1]
	if len(p.Shape) == 1 && (strings.HasSuffix(p.Name, "norm.weight") || last == "inv_freq") {
		return nil
	}
	axis, known := rowsAndColumns[words[max(len(words)-2, 0)]]
	if !known || last != "weight" || len(p.Shape) != 2 || p.Bytes() == 0 || p.Bytes()/p.Shape[0]%p.Shape[1] != 0 {
		return models.Conflict("%s cannot be divided by attention heads: how it is used is not known.", models.VisibleName(p.Name))
	}
	n := p.Shape[axis]
	if slices.Contains(words, "self_attn") && n%heads != 0 {
		return models.Conflict("%s cannot be divided by attention heads: %d is not a multiple of %d.", models.VisibleName(p.Name), n, heads)
	}
	from, until = DivisionOf(n, from, heads), DivisionOf(n, until, heads)
	row := p.Bytes() / p.Shape[0]
	rows, item := p.Shape[0], row/p.Shape[1]
	p.Shape = slices.Clone(p.Shape)
	p.Shape[axis] = until - from
	if axis == 0 {
		p.From, p.Until = p.From+from*row, p.From+until*row
		return nil
	}
	p.Step = row
	p.From, p.Until = p.From+from*item, p.From+(rows-1)*row+until*item
	return nil
}

// DivisionOf is where the heads from a number of so many on begin on an axis of size n.
func DivisionOf(n, from, heads int64) int64 { return n * from / heads }

// Range is bytes of a file: consecutive ones, or Width of every Step.
type Range struct {
	File        int
	From, Until int64
	Width, Step int64 // 0: all
}

// Bytes is how many they are.
func (r Range) Bytes() int64 {
	if r.Step == 0 {
		return r.Until - r.From
	}
	return ((r.Until-r.From-r.Width)/r.Step + 1) * r.Width
}

// Ranges are the bytes of tensors, with those that follow on each other as one.
func Ranges(list []Placed) (ranges []Range) {
	for _, t := range list {
		last := len(ranges) - 1
		switch {
		case t.Bytes() == 0:
		case t.Step > 0:
			ranges = append(ranges, Range{t.File, t.From, t.Until, t.width(), t.Step})
		case last >= 0 && ranges[last].Step == 0 && ranges[last].File == t.File && ranges[last].Until == t.From:
			ranges[last].Until = t.Until
		default:
			ranges = append(ranges, Range{File: t.File, From: t.From, Until: t.Until})
		}
	}
	return slices.Clip(ranges)
}
