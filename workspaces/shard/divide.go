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
	"embed_tokens": 0, "word_embeddings": 0, "lm_head": 0, "pooler.dense": 0,
	"query": 0, "key": 0, "value": 0, "intermediate.dense": 0, "output.dense": 1, "projection": 0, "classifier": 0}

// onEachPart is the axis of what is not divided: vectors of norms, and what is added to the sum of
// what all parts compute.
const onEachPart = -1

// ofPositions are what is added to the hidden values of tokens, or numbers them.
var ofPositions = []string{"cls_token", "position_embeddings", "token_type_embeddings", "position_ids", "token_type_ids"}

// axisOf is the axis along which a tensor is divided; false if it is not known how it is used.
func axisOf(t Tensor) (axis int, known bool) {
	words := strings.Split(t.Name, ".")
	last, module := words[len(words)-1], words[max(len(words)-2, 0)]
	if module == "dense" {
		module = strings.Join(words[max(len(words)-3, 0):len(words)-1], ".")
	}
	axis, known = rowsAndColumns[module]
	vector := len(t.Shape) == 1
	switch {
	case vector && (strings.Contains(strings.ToLower(module), "norm") || last == "inv_freq"), vector && known && axis == 1 && last == "bias",
		slices.Contains(ofPositions, module), slices.Contains(ofPositions, last):
		return onEachPart, true
	case last == "bias":
		return axis, known && vector
	default:
		return axis, known && last == "weight" && (len(t.Shape) == 2 || len(t.Shape) > 2 && axis == 0)
	}
}

// divide makes of a whole tensor the rows or columns for the heads from until until of so many. The
// error is a conflict.
func (p *Placed) divide(from, until, heads int64) error {
	axis, known := axisOf(p.Tensor)
	if known && axis == onEachPart {
		return nil
	}
	if !known || p.Bytes() == 0 || p.Bytes()%p.Parameters != 0 {
		return models.Conflict("%s cannot be divided by attention heads: how it is used is not known.", models.VisibleName(p.Name))
	}
	n := p.Shape[axis]
	if ofAttention(p.Name) && n%heads != 0 {
		return models.Conflict("%s cannot be divided by attention heads: %d is not a multiple of %d.", models.VisibleName(p.Name), n, heads)
	}
	from, until = DivisionOf(n, from, heads), DivisionOf(n, until, heads)
	row, rows := p.Bytes()/p.Shape[0], p.Shape[0]
	p.Shape = slices.Clone(p.Shape)
	p.Shape[axis] = until - from
	if axis == 0 {
		p.From, p.Until = p.From+from*row, p.From+until*row
		return nil
	}
	p.Step = row
	item := row / n
	p.From, p.Until = p.From+from*item, p.From+(rows-1)*row+until*item
	return nil
}

// ofAttention reports whether rows or columns of a tensor are those of attention heads.
func ofAttention(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "."), func(word string) bool { return word == "self_attn" || word == "attention" })
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
