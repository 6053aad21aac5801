package onnx

import (
	"math"
	"math/bits"
)

// maxRank is the most dimensions of an initializer.
const maxRank = 16

// text is the element type of texts, which have no fixed size.
const text = 8

// elements are the element types of TensorProto.DataType: their names, which are those of
// safetensors where it has the type, and the bits of a value.
var elements = map[int64]struct {
	name string
	bits uint64
}{
	1: {"F32", 32}, 2: {"U8", 8}, 3: {"I8", 8}, 4: {"U16", 16}, 5: {"I16", 16}, 6: {"I32", 32}, 7: {"I64", 64}, text: {"STRING", 0},
	9: {"BOOL", 8}, 10: {"F16", 16}, 11: {"F64", 64}, 12: {"U32", 32}, 13: {"U64", 64}, 14: {"C64", 64}, 15: {"C128", 128},
	16: {"BF16", 16}, 17: {"F8_E4M3", 8}, 18: {"F8_E4M3FNUZ", 8}, 19: {"F8_E5M2", 8}, 20: {"F8_E5M2FNUZ", 8},
	21: {"U4", 4}, 22: {"I4", 4}, 23: {"F4", 4}, 24: {"F8_E8M0", 8}, 25: {"U2", 2}, 26: {"I2", 2},
}

// TypeName is the name of the element type, such as F32; empty if it is not known.
func (t Tensor) TypeName() string { return elements[t.Type].name }

// Size is the number of values and their bytes. Values of less than a byte are packed, and the
// last byte is filled up; the bytes of texts are those that the file has. It reports false if
// the type or the shape is not valid, or if the file has another number of raw bytes.
func (t Tensor) Size() (values, bytes int64, ok bool) {
	element, known := elements[t.Type]
	n := uint64(1)
	for _, size := range t.Shape {
		high, low := bits.Mul64(n, uint64(size))
		if size < 0 || high > 0 || low > math.MaxInt64 {
			return 0, 0, false
		}
		n = low
	}
	high, total := bits.Mul64(n, element.bits)
	if !known || high > 0 || len(t.Shape) > maxRank {
		return 0, 0, false
	}
	raw := t.Until - t.From
	if t.Type == text {
		return int64(n), t.Texts, raw == 0
	}
	bytes = int64(total/8 + (total%8+7)/8)
	return int64(n), bytes, raw == 0 || raw == bytes
}
