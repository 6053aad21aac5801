package onnx

import (
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"weir/models"
)

const (
	maxNodes   = 100_000
	maxTensors = 100_000
)

// Model is the operators and the tensors of a model.
type Model struct {
	Name            string
	Tensors         []Tensor // initializers
	nodes           []node
	shapes          map[string][]int64 // by the name of a value
	inputs, outputs []string           // names of values
	header          []span             // the fields of the file beside the graph and what trains it
}

// span is a part of the file.
type span struct{ from, until int64 }

// Tensor is an initializer.
type Tensor struct {
	Name        string
	Type        int64 // TensorProto.DataType
	Shape       []int64
	From, Until int64 // of its raw bytes in the file; both 0: they are stored otherwise
	Texts       int64 // bytes of its texts
	external    bool  // its values are in another file
	span
}

// node is an operator of the model.
type node struct {
	op              string
	inputs, outputs []string
	numbers         map[string][]int64
	autoPad         string
	nested          bool // it has graphs of its own
	span
}

// Read reads a model of size bytes. why says why it is refused.
func Read(r io.ReaderAt, size int64) (m Model, why models.Text, err error) {
	s := section{&source{r: r}, 0, size}
	m.shapes = map[string][]int64{}
	graphs := 0
	s.each(func(f field) {
		switch {
		case f.number == 7 && f.kind == protowire.BytesType:
			graphs++
			m.graph(f.body)
		case f.number != 20:
			m.header = append(m.header, span{f.at, f.body.until})
		}
	})
	if s.err == nil && s.why.Empty() && (graphs != 1 || len(m.nodes) == 0) {
		s.malformed()
	}
	return m, s.why, s.err
}

// each calls a function with each field.
func (s section) each(do func(field)) {
	for f, ok := s.next(); ok; f, ok = s.next() {
		do(f)
	}
}

func (m *Model) graph(s section) {
	s.each(func(f field) {
		switch {
		case f.kind != protowire.BytesType:
		case f.number == 1:
			m.nodes = append(m.nodes, readNode(f.body))
		case f.number == 2:
			m.Name = f.text()
		case f.number == 5:
			t := readTensor(f.body)
			m.Tensors, m.shapes[t.Name] = append(m.Tensors, t), t.Shape
		case f.number == 11:
			m.inputs = append(m.inputs, m.value(f.body))
		case f.number == 12:
			m.outputs = append(m.outputs, m.value(f.body))
		case f.number == 13:
			m.value(f.body)
		}
		if len(m.nodes) > maxNodes || len(m.Tensors) > maxTensors {
			s.tooLarge()
		}
	})
}

func readNode(s section) (n node) {
	n.span = span{s.at, s.until}
	s.each(func(f field) {
		switch {
		case f.kind != protowire.BytesType:
		case f.number == 1:
			n.inputs = append(n.inputs, f.text())
		case f.number == 2:
			n.outputs = append(n.outputs, f.text())
		case f.number == 4:
			n.op = f.text()
		case f.number == 5:
			n.attribute(f.body)
		}
	})
	return n
}

func (n *node) attribute(s section) {
	var name, text string
	var numbers []int64
	s.each(func(f field) {
		switch {
		case f.number == 1:
			name = f.text()
		case f.number == 3, f.number == 8:
			numbers = f.numbers(numbers)
		case f.number == 4 && f.body.until-f.body.at <= maxText:
			text = f.text()
		case f.number == 6, f.number == 11:
			n.nested = true
		}
	})
	if name == "auto_pad" {
		n.autoPad = text
	}
	if numbers != nil {
		if n.numbers == nil {
			n.numbers = map[string][]int64{}
		}
		n.numbers[name] = numbers
	}
}

func readTensor(s section) (t Tensor) {
	t.Shape, t.span = []int64{}, span{s.at, s.until}
	s.each(func(f field) {
		switch {
		case f.number == 1:
			t.Shape = f.numbers(t.Shape)
		case f.number == 2:
			t.Type = int64(f.value)
		case f.number == 6:
			t.Texts += f.body.until - f.body.at
		case f.number == 8:
			t.Name = f.text()
		case f.number == 9:
			t.From, t.Until = f.body.at, f.body.until
		case f.number == 14:
			t.external = f.value == 1
		}
	})
	return t
}

// value reads the name and the shape of a value. A dimension without a number counts as 1.
func (m *Model) value(s section) (name string) {
	shape := []int64(nil)
	within := func(number protowire.Number, do func(section)) func(field) {
		return func(f field) {
			if f.number == number && f.kind == protowire.BytesType {
				do(f.body)
			}
		}
	}
	dimension := func(s section) {
		size := int64(1)
		s.each(func(f field) {
			if f.number == 1 && int64(f.value) > 0 {
				size = int64(f.value)
			}
		})
		if len(shape) < maxNumbers {
			shape = append(shape, size)
		}
	}
	s.each(func(f field) {
		switch {
		case f.number == 1:
			name = f.text()
		case f.number == 2:
			f.body.each(within(1, func(s section) { // tensor_type
				s.each(within(2, func(s section) { // shape
					shape = []int64{}
					s.each(within(1, dimension))
				}))
			}))
		}
	})
	if _, known := m.shapes[name]; shape != nil && !known {
		m.shapes[name] = shape
	}
	return name
}
