package onnxtest

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// Side is that of the image of [Network], in pixels.
const Side = 6

// Network forks into two convolutions and a pooling, and joins: its result is of 3 classes. Its
// weights are small whole numbers, so that sums are exact.
func Network() []byte {
	var g Message
	for _, n := range [][]byte{
		Operator("Relu", "image -> r"),
		Operator("Conv", "r w1 -> a", Ints("kernel_shape", 1, 1)), Operator("Relu", "a -> left"),
		Operator("Conv", "r w2 -> b", Ints("kernel_shape", 1, 1)), Operator("Relu", "b -> right"),
		Operator("Add", "left right -> sum"), Operator("Flatten", "sum -> flat"),
		Operator("Gemm", "flat fc -> classes", Message{}.Bytes(1, []byte("transB")).Number(3, 1).Number(20, 2)),
	} {
		g = g.Bytes(1, n)
	}
	g = g.Bytes(2, []byte("network"))
	g = g.Bytes(5, Floats("w1", []float32{1, -2, 3, 1}, 2, 2, 1, 1)).Bytes(5, Floats("w2", []float32{-1, 1, 0, 2}, 2, 2, 1, 1))
	fc := make([]float32, 2*Side*Side*3)
	for i := range fc {
		fc[i] = float32(i%5 - 2)
	}
	g = g.Bytes(5, Floats("fc", fc, 3, 2*Side*Side)).Bytes(11, Value("image", 1, 2, Side, Side)).Bytes(12, Value("classes", 1, 3))
	return Model(g)
}

// Classes is what [Network] computes of an image, computed one operator after another.
func Classes(image []float32) (result [3]float32) {
	relu := func(v float32) float32 { return max(v, 0) }
	const plane = Side * Side
	for p := range plane {
		x, y := relu(image[p]), relu(image[plane+p])
		for channel, sum := range []float32{relu(x-2*y) + relu(-x+y), relu(3*x+y) + relu(2*y)} {
			for c := range result {
				result[c] += sum * float32((c*2*plane+channel*plane+p)%5-2)
			}
		}
	}
	return result
}

// Image is an input of [Network].
func Image() []float32 {
	image := make([]float32, 2*Side*Side)
	for i := range image {
		image[i] = float32(i*7%11 - 5)
	}
	return image
}

// Array is a file of NumPy with 32-bit numbers: magic, version, header and values, as
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html describes.
func Array(values []float32, shape ...int) []byte {
	sizes := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(shape)), ", "), "[]")
	header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", sizes)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	b = append(b, header...)
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}
