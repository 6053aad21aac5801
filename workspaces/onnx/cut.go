package onnx

import (
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"weir/models"
)

// Part is a branch of a model, which can be written as a model of its own.
type Part struct {
	Inputs, Outputs []string // names of values: those that it needs, and those that others or the user need of it
	nodes           []int
	tensors         []int
}

// Inputs are the names of the values that a model is given.
func (m *Model) Inputs() (names []string) {
	stored := map[string]bool{} // older models declare initializers as inputs with defaults
	for _, t := range m.Tensors {
		stored[t.Name] = true
	}
	for _, name := range m.inputs {
		if !stored[name] {
			names = append(names, name)
		}
	}
	return names
}

// Outputs are the names of the values that a model returns.
func (m *Model) Outputs() []string { return m.outputs }

// Parts are the branches of the graph, in its order. why says why the model cannot be cut.
func (m *Model) Parts() (parts []Part, why models.Text) {
	chains, why := m.chains()
	if !why.Empty() {
		return nil, why
	}
	c, why := m.newCut(chains)
	if !why.Empty() {
		return nil, why
	}
	parts = make([]Part, len(chains))
	for k, one := range chains {
		for _, i := range one.nodes {
			if why := c.add(&parts[k], k, i); !why.Empty() {
				return nil, why
			}
		}
	}
	for k, one := range chains {
		c.outputs(&parts[k], one)
	}
	for _, name := range m.outputs {
		if i, made := c.makers[name]; !made || m.nodes[i].op == constant {
			return nil, models.Say("no operator computes the result %s", shorten(name))
		}
	}
	return parts, why
}

// cut is where the values of a model come from, and which of them leave their branch.
type cut struct {
	*Model
	branch  []int          // of each operator
	makers  map[string]int // operators by the values that they compute
	tensors map[string]int
	given   map[string]bool
	wanted  map[string]bool // by other branches, or by the user
}

func (m *Model) newCut(chains []chain) (c cut, why models.Text) {
	c = cut{m, make([]int, len(m.nodes)), map[string]int{}, map[string]int{}, map[string]bool{}, map[string]bool{}}
	for k, one := range chains {
		for _, i := range one.nodes {
			c.branch[i] = k
		}
	}
	for i, n := range m.nodes {
		if n.nested {
			return c, models.Say("operator %s has graphs of its own: such a model can be planned only", m.operatorName(i))
		}
		for _, name := range n.outputs {
			if _, twice := c.makers[name]; twice && name != "" {
				return c, models.Say("two operators compute %s", shorten(name))
			}
			c.makers[name] = i
		}
	}
	for i, t := range m.Tensors {
		c.tensors[t.Name] = i
	}
	for _, name := range m.Inputs() {
		c.given[name] = true
	}
	for _, name := range m.outputs {
		c.wanted[name] = true
	}
	return c, why
}

// add adds an operator to its part, with what it uses: initializers and constants are copied.
func (c *cut) add(p *Part, branch, i int) (why models.Text) {
	for _, name := range c.nodes[i].inputs {
		maker, made := c.makers[name]
		tensor, stored := c.tensors[name]
		switch {
		case name == "":
		case made && c.nodes[maker].op == constant:
			p.nodes = include(p.nodes, maker)
		case made && c.branch[maker] == branch:
		case made:
			c.wanted[name] = true
			p.Inputs = include(p.Inputs, name)
		case stored && c.Tensors[tensor].external:
			return models.Say("the values of %s are in another file: such a model can be planned only", shorten(name))
		case stored:
			p.tensors = include(p.tensors, tensor)
		case c.given[name]:
			p.Inputs = include(p.Inputs, name)
		default:
			return models.Say("operator %s uses %s, which nothing computes", c.operatorName(i), shorten(name))
		}
	}
	p.nodes = append(p.nodes, i)
	return why
}

// outputs names what others need of a part; if that is nothing, what its last operator computes, so
// that the part is a model.
func (c *cut) outputs(p *Part, one chain) {
	for _, i := range one.nodes {
		for _, name := range c.nodes[i].outputs {
			if c.wanted[name] {
				p.Outputs = include(p.Outputs, name)
			}
		}
	}
	if len(p.Outputs) == 0 {
		last := c.nodes[one.nodes[len(one.nodes)-1]].outputs
		p.Outputs = slices.DeleteFunc(slices.Clone(last), func(name string) bool { return name == "" })
	}
}

// include adds what is not in a list yet.
func include[T comparable](list []T, one T) []T {
	if slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}

// WritePart writes a part as a model, with operators and initializers as file has them. Its
// inputs and outputs are not declared, because types and shapes are known when the part runs:
// a message with the fields graph.input and graph.output that is appended to it declares them, as
// the encoding of protocol buffers merges messages
// (https://protobuf.dev/programming-guides/encoding/#last-one-wins).
func (m *Model) WritePart(w io.Writer, file io.ReaderAt, p Part) error {
	var graph pieces
	for _, i := range p.nodes {
		graph.copied(1, m.nodes[i].span)
	}
	graph.written(protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), m.Name))
	for _, i := range p.tensors {
		graph.copied(5, m.Tensors[i].span)
	}
	var whole pieces
	for _, s := range m.header {
		whole = append(whole, piece{span: s})
	}
	whole.written(protowire.AppendVarint(protowire.AppendTag(nil, 7, protowire.BytesType), uint64(graph.size())))
	return append(whole, graph...).write(w, file)
}

// piece is bytes of a model: those of a file, or others.
type piece struct {
	other []byte
	span
}

func (p piece) size() int64 { return int64(len(p.other)) + p.until - p.from }

type pieces []piece

func (list *pieces) written(b []byte) { *list = append(*list, piece{other: b}) }

// copied adds a field with a message of the file.
func (list *pieces) copied(number protowire.Number, s span) {
	list.written(protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.BytesType), uint64(s.until-s.from)))
	*list = append(*list, piece{span: s})
}

func (list pieces) size() (n int64) {
	for _, p := range list {
		n += p.size()
	}
	return n
}

func (list pieces) write(w io.Writer, file io.ReaderAt) error {
	for _, p := range list {
		if _, err := w.Write(p.other); err != nil {
			return err
		}
		if _, err := io.CopyN(w, io.NewSectionReader(file, p.from, p.until-p.from), p.until-p.from); err != nil {
			return err
		}
	}
	return nil
}
