package onnxtest

import (
	"encoding/binary"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Message is a message of protocol buffers in the making.
type Message []byte

// Bytes adds a field with content.
func (m Message) Bytes(n protowire.Number, content []byte) Message {
	return protowire.AppendBytes(protowire.AppendTag(m, n, protowire.BytesType), content)
}

// Number adds a field with a number.
func (m Message) Number(n protowire.Number, value int64) Message {
	return protowire.AppendVarint(protowire.AppendTag(m, n, protowire.VarintType), uint64(value))
}

// Ints is an attribute with a list of numbers, in one field.
func Ints(name string, values ...int64) []byte {
	var packed []byte
	for _, v := range values {
		packed = protowire.AppendVarint(packed, uint64(v))
	}
	return Message{}.Bytes(1, []byte(name)).Bytes(8, packed).Number(20, 7)
}

// Operator is a node: "x w -> y".
func Operator(op, values string, attributes ...[]byte) []byte {
	in, out, _ := strings.Cut(values, "->")
	var m Message
	for _, name := range strings.Fields(in) {
		m = m.Bytes(1, []byte(name))
	}
	for _, name := range strings.Fields(out) {
		m = m.Bytes(2, []byte(name))
	}
	m = m.Bytes(4, []byte(op))
	for _, a := range attributes {
		m = m.Bytes(5, a)
	}
	return m
}

// Weights is an initializer of 32-bit numbers, which are zero.
func Weights(name string, shape ...int64) []byte {
	var m Message
	size := int64(4)
	for _, n := range shape {
		m, size = m.Number(1, n), size*n
	}
	return m.Number(2, 1).Bytes(8, []byte(name)).Bytes(9, make([]byte, size))
}

// Value is an input. A dimension of 0 has only a name.
func Value(name string, shape ...int64) []byte {
	var dims Message
	for _, n := range shape {
		dim := Message{}.Bytes(2, []byte("N"))
		if n > 0 {
			dim = Message{}.Number(1, n)
		}
		dims = dims.Bytes(1, dim)
	}
	tensor := Message{}.Number(1, 1).Bytes(2, dims)
	return Message{}.Bytes(1, []byte(name)).Bytes(2, Message{}.Bytes(1, tensor))
}

// Floats is an initializer with values.
func Floats(name string, values []float32, shape ...int64) []byte {
	var m Message
	for _, n := range shape {
		m = m.Number(1, n)
	}
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return m.Number(2, 1).Bytes(8, []byte(name)).Bytes(9, raw)
}

// Model is a whole model: its graph, of version 13 of the operators.
func Model(g Message) []byte {
	return Message{}.Number(1, 7).Bytes(7, g).Bytes(8, Message{}.Bytes(1, nil).Number(2, 13))
}
