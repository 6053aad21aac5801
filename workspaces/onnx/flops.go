package onnx

import (
	"slices"
	"strings"
)

// elementwise are operators with one operation for each value of the result.
var elementwise = words(`Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceil Celu Clip Cos
	Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean
	Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Tan Tanh
	ThresholdedRelu Where Xor QuantizeLinear DequantizeLinear`)

// moving are operators that compute nothing.
var moving = words(`Cast CastLike Concat ConstantOfShape DepthToSpace Dropout Expand Flatten Gather GatherElements GatherND Identity Pad
	Reshape Shape Size Slice SpaceToDepth Split Squeeze Tile Transpose Unsqueeze Range EyeLike`)

// same are operators whose result has the shape of their first input, with the operations for
// each value.
var same = map[string]float64{"BatchNormalization": 2, "Softmax": 5, "LogSoftmax": 5, "LayerNormalization": 8, "InstanceNormalization": 8,
	"GroupNormalization": 8, "RMSNormalization": 8, "LpNormalization": 8, "MeanVarianceNormalization": 8}

func words(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}

// work computes the operations of an operator, and keeps the shape of its result for the next
// ones, unless the model states it.
func (m *Model) work(n node) (flops float64, known bool) {
	if len(n.outputs) == 0 {
		return 0, moving[n.op]
	}
	name := n.outputs[0]
	y, stated := m.shapes[name]
	if !stated {
		if y = m.shapeOf(n); y != nil {
			m.shapes[name] = y
		}
	}
	x, w := m.input(n, 0), m.input(n, 1)
	if moving[n.op] {
		return 0, true
	}
	if y == nil {
		return 0, false
	}
	values := product(y)
	switch {
	case elementwise[n.op]:
		return values, true
	case same[n.op] > 0:
		return same[n.op] * values, true
	case n.op == "Conv" || n.op == "ConvTranspose":
		if n.op == "ConvTranspose" && len(x) > 0 {
			flops = product(x)
		} else {
			flops = values
		}
		if flops *= 2 * product(from(w, 1)); len(n.inputs) > 2 {
			flops += values
		}
		return flops, len(w) > 1 && (len(x) > 0 || n.op == "Conv")
	case n.op == "Gemm" && len(x) == 2:
		inner := x[1]
		if n.number("transA", 0) == 1 {
			inner = x[0]
		}
		if flops = 2 * values * float64(inner); len(n.inputs) > 2 {
			flops += values
		}
		return flops, true
	case n.op == "MatMul" && len(x) > 0:
		return 2 * values * float64(x[len(x)-1]), true
	case n.op == "MaxPool" || n.op == "AveragePool" || n.op == "LpPool":
		return values * product(n.numbers["kernel_shape"]), n.numbers["kernel_shape"] != nil
	case strings.HasPrefix(n.op, "Global"), strings.HasPrefix(n.op, "Reduce"), n.op == "ArgMax", n.op == "ArgMin":
		return product(x), x != nil
	}
	return 0, false
}

// input is the shape of an input; nil if it is not known.
func (m *Model) input(n node, i int) []int64 {
	if i >= len(n.inputs) {
		return nil
	}
	return m.shapes[n.inputs[i]]
}

// number is an attribute.
func (n node) number(name string, otherwise int64) int64 { return at(n.numbers[name], 0, otherwise) }

func at(list []int64, i int, otherwise int64) int64 {
	if i < len(list) {
		return list[i]
	}
	return otherwise
}

func from(list []int64, i int) []int64 { return list[min(i, len(list)):] }

// product never overflows, so that no number of operations is undefined.
func product(shape []int64) float64 {
	p := 1.0
	for _, n := range shape {
		p = min(p*float64(max(n, 0)), 1e100)
	}
	return p
}

// shapeOf is the shape of the first result, from those of the inputs; nil if it is not known.
func (m *Model) shapeOf(n node) []int64 {
	x, w := m.input(n, 0), m.input(n, 1)
	if x == nil {
		return nil
	}
	switch {
	case elementwise[n.op]:
		return m.broadcast(n)
	case same[n.op] > 0 || n.op == "Identity" || n.op == "Dropout" || n.op == "Cast":
		return x
	case n.op == "Conv" && len(x) > 2 && len(w) == len(x):
		return append([]int64{x[0], w[0]}, n.slide(x[2:], w[2:])...)
	case n.op == "MaxPool" || n.op == "AveragePool" || n.op == "LpPool":
		if kernel := n.numbers["kernel_shape"]; len(x) > 2 && len(kernel) == len(x)-2 {
			return append(slices.Clone(x[:2]), n.slide(x[2:], kernel)...)
		}
	case strings.HasPrefix(n.op, "Global") && len(x) > 2:
		return append(slices.Clone(x[:2]), slices.Repeat([]int64{1}, len(x)-2)...)
	case n.op == "Gemm" && len(x) == 2 && len(w) == 2:
		return []int64{x[n.number("transA", 0)&1], w[1-n.number("transB", 0)&1]}
	case n.op == "MatMul" && len(x) > 1 && len(w) > 1:
		batch := broadcast(x[:len(x)-2], w[:len(w)-2])
		return append(slices.Clone(batch), x[len(x)-2], w[len(w)-1])
	case n.op == "Flatten":
		axis := n.number("axis", 1)
		if axis < 0 {
			axis += int64(len(x))
		}
		if axis >= 0 && axis <= int64(len(x)) {
			return []int64{whole(x[:axis]), whole(x[axis:])}
		}
	case n.op == "Transpose":
		return transposed(x, n.numbers["perm"])
	case n.op == "Concat":
		return m.concat(n)
	}
	return nil
}

// whole is a product that fits into a dimension.
func whole(shape []int64) int64 { return int64(min(product(shape), 1<<62)) }

// slide is how often a kernel fits into each dimension.
func (n node) slide(x, kernel []int64) []int64 {
	out := make([]int64, len(x))
	for i := range x {
		stride, pads := max(at(n.numbers["strides"], i, 1), 1), n.numbers["pads"]
		if strings.HasPrefix(n.autoPad, "SAME") {
			out[i] = max(x[i]-1, 0)/stride + 1
			continue
		}
		padded := x[i] + at(pads, i, 0) + at(pads, i+len(x), 0) - (kernel[i]-1)*at(n.numbers["dilations"], i, 1) - 1
		if n.number("ceil_mode", 0) == 1 {
			padded += stride - 1
		}
		out[i] = max(padded, 0)/stride + 1
	}
	return out
}

// broadcast is the shape of all inputs together.
func (m *Model) broadcast(n node) (out []int64) {
	for i, name := range n.inputs {
		shape, known := m.shapes[name]
		if !known && name != "" && len(n.inputs) > 1 {
			return nil
		}
		if out = broadcast(out, shape); i == 0 && out == nil {
			out = []int64{}
		}
	}
	return out
}

func broadcast(a, b []int64) []int64 {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clone(a)
	for i := range b {
		at := len(a) - len(b) + i
		out[at] = max(out[at], b[i])
	}
	return out
}

func transposed(x, perm []int64) []int64 {
	out := slices.Clone(x)
	if perm == nil {
		slices.Reverse(out)
		return out
	}
	for i, p := range perm {
		if p < 0 || p >= int64(len(x)) || len(perm) != len(x) {
			return nil
		}
		out[i] = x[p]
	}
	return out
}

func (m *Model) concat(n node) []int64 {
	x := slices.Clone(m.input(n, 0))
	axis := n.number("axis", 0)
	if axis < 0 {
		axis += int64(len(x))
	}
	for i := 1; i < len(n.inputs); i++ {
		other := m.input(n, i)
		if len(other) != len(x) || axis < 0 || axis >= int64(len(x)) {
			return nil
		}
		x[axis] = min(x[axis], 1<<61) + min(max(other[axis], 0), 1<<61)
	}
	return x
}
