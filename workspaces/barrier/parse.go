package barrier

import (
	"sort"
	"strings"

	"weir/models"
)

// module is a parsed source: its functions, and nothing of the rest.
type module struct {
	source    string
	lines     []int // offset of each line
	functions []*function
	named     map[string]bool // barriers that .weir.bar declares outside functions
	drop      [][2]int        // bytes of the directives .weir.bar
}

// function is an entry or a device function with a body.
type function struct {
	name   string
	line   int
	entry  bool
	shape  [3]int // threads by dimension, of .reqntid; zero: not stated
	code   []instruction
	blocks []int              // the block around each; the first is the body, which is in itself
	labels map[label]int      // index of the instruction after a label
	lists  map[label][]string // labels in each .branchtargets
	named  map[string]bool
}

// label is a name in a block, which is known there and in the blocks within.
type label struct {
	block int
	name  string
}

// find looks a label up from a block on outwards.
func find[T any](f *function, of map[label]T, block int, name string) (found T, ok bool) {
	for {
		if found, ok = of[label{block, name}]; ok || block == 0 {
			return found, ok
		}
		block = f.blocks[block]
	}
}

// instruction is one statement of a function.
type instruction struct {
	line     int
	block    int
	opcode   string
	guard    string // predicate register; empty: always executed
	negated  bool
	operands [][]token // without commas
}

// parser reads a module.
type parser struct {
	lexer
	module
	tok token
}

func parse(source string) (*module, error) {
	p := &parser{lexer: lexer{source: source}, module: module{source: source, named: map[string]bool{}}}
	p.lines = append(p.lines, 0)
	for i := range len(source) {
		if source[i] == '\n' {
			p.lines = append(p.lines, i+1)
		}
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	for p.tok.text != "" {
		if err := p.topLevel(); err != nil {
			return nil, err
		}
	}
	return &p.module, nil
}

// line is the number of the line with a byte.
func (m *module) line(at int) int {
	return sort.Search(len(m.lines), func(i int) bool { return m.lines[i] > at })
}

func (p *parser) advance() (err error) {
	p.tok, err = p.next()
	return err
}

// topLevel reads a function, a directive .weir.bar, or one token of anything else.
func (p *parser) topLevel() error {
	switch p.tok.text {
	case ".entry", ".func":
		return p.function()
	case barDirective:
		return p.declaration(p.module.named)
	default:
		return p.advance()
	}
}

// barDirective declares barriers by name. It is no directive of PTX: it is removed.
const barDirective = ".weir.bar"

// declaration reads “.weir.bar name, name;”.
func (p *parser) declaration(into map[string]bool) error {
	from := p.tok.from
	for {
		if err := p.advance(); err != nil {
			return err
		}
		name := p.tok
		if name.text == "" || !isWordByte(name.text[0]) || strings.ContainsAny(name.text, ".%") || name.text[0] >= '0' && name.text[0] <= '9' {
			return p.refuse(name.from, models.Say("%s needs the names of barriers, separated by commas", barDirective))
		}
		if into[name.text] {
			return p.refuse(name.from, models.Say("barrier %s is declared twice", name.text))
		}
		into[name.text] = true
		if err := p.advance(); err != nil {
			return err
		}
		switch p.tok.text {
		case ",":
		case ";":
			p.drop = append(p.drop, [2]int{from, p.tok.to})
			return p.advance()
		default:
			return p.refuse(p.tok.from, models.Say("%s needs the names of barriers, separated by commas", barDirective))
		}
	}
}

// function reads a function, or skips its declaration.
func (p *parser) function() error {
	f := &function{entry: p.tok.text == ".entry", line: p.line(p.tok.from), labels: map[label]int{},
		lists: map[label][]string{}, blocks: []int{0}, named: map[string]bool{}}
	depth := 0
	for {
		if err := p.advance(); err != nil {
			return err
		}
		switch text := p.tok.text; {
		case text == "":
			return p.refuse(p.tok.from, models.Say("the function has no end"))
		case text == "(":
			depth++
		case text == ")":
			depth--
		case depth > 0:
		case text == ";":
			return p.advance()
		case text == "{":
			p.functions = append(p.functions, f)
			return p.body(f)
		case text == ".reqntid":
			if err := p.shape(f); err != nil {
				return err
			}
		case f.name == "" && text[0] != '.' && isWordByte(text[0]):
			f.name = text
		}
	}
}

// shape reads the sizes of .reqntid, up to the token before what follows.
func (p *parser) shape(f *function) error {
	f.shape = [3]int{1, 1, 1}
	for i := range f.shape {
		if err := p.advance(); err != nil {
			return err
		}
		n, ok := int64(0), false
		if p.tok.text != "" {
			n, ok = integer(p.tok.text)
		}
		if !ok || n < 1 || n > maxThreads {
			return p.refuse(p.tok.from, models.Say(".reqntid needs from 1 to 3 sizes from 1 to %d", maxThreads))
		}
		f.shape[i] = int(n)
		ahead := p.lexer
		if comma, err := ahead.next(); err != nil || comma.text != "," {
			break
		}
		p.lexer = ahead
	}
	if f.threads() > maxThreads {
		return p.refuse(p.tok.from, models.Say("a thread block has at most %d threads", maxThreads))
	}
	return nil
}

// threads is the number of threads in a block; 0 if it is not known.
func (f *function) threads() int { return f.shape[0] * f.shape[1] * f.shape[2] }

// maxNesting bounds the blocks around a label, in which it is looked for.
const maxNesting = 100

// body reads statements up to the brace that closes the function.
func (p *parser) body(f *function) error {
	block, depth := 0, 0
	if err := p.advance(); err != nil {
		return err
	}
	for {
		switch p.tok.text {
		case "":
			return p.refuse(p.tok.from, models.Say("the function has no end"))
		case "{":
			if depth++; depth > maxNesting {
				return p.refuse(p.tok.from, models.Say("more than %d blocks are nested", maxNesting))
			}
			f.blocks = append(f.blocks, block)
			block = len(f.blocks) - 1
		case "}":
			if block == 0 {
				return p.advance()
			}
			block, depth = f.blocks[block], depth-1
		case ";":
		case barDirective:
			if err := p.declaration(f.named); err != nil {
				return err
			}
			continue
		default:
			if err := p.statement(f, block); err != nil {
				return err
			}
			continue
		}
		if err := p.advance(); err != nil {
			return err
		}
	}
}

// statement reads a label, or an instruction or directive with its semicolon.
func (p *parser) statement(f *function, block int) error {
	first := p.tok
	if err := p.advance(); err != nil {
		return err
	}
	if p.tok.text == ":" {
		return p.label(f, block, first)
	}
	if first.text == ".loc" {
		return p.location(p.line(first.from))
	}
	in := instruction{line: p.line(first.from), block: block}
	if first.text == "@" {
		var err error
		if first, err = p.guard(&in); err != nil {
			return err
		}
	}
	in.opcode = first.text
	var operand []token
	for depth := 0; ; {
		switch text := p.tok.text; {
		case text == "":
			return p.refuse(first.from, models.Say("the instruction has no semicolon"))
		case text == ";" || text == "," && depth == 0:
			if operand != nil || text == "," {
				in.operands, operand = append(in.operands, operand), nil
			}
			if text == ";" {
				f.code = append(f.code, in)
				return p.advance()
			}
		default:
			depth += strings.Count("{[(", text) - strings.Count("}])", text)
			operand = append(operand, p.tok)
		}
		if err := p.advance(); err != nil {
			return err
		}
	}
}

// label reads what follows the colon of a label: a statement, or the list of
// .branchtargets that the label names.
func (p *parser) label(f *function, block int, name token) error {
	here := label{block, name.text}
	if _, twice := f.labels[here]; twice {
		return p.refuse(name.from, models.Say("label %s is defined twice", name.text))
	}
	f.labels[here] = len(f.code)
	if err := p.advance(); err != nil || p.tok.text != ".branchtargets" {
		return err
	}
	if err := p.statement(f, block); err != nil {
		return err
	}
	list := f.code[len(f.code)-1]
	f.code = f.code[:len(f.code)-1]
	for _, operand := range list.operands {
		if len(operand) != 1 {
			return refuse(list.line, models.Say("write the labels of .branchtargets one by one"))
		}
		f.lists[here] = append(f.lists[here], operand[0].text)
	}
	return nil
}

// location passes the rest of .loc, which ends with its line (PTX ISA, section 11.5.4). Some write a semicolon.
func (p *parser) location(line int) error {
	for p.tok.text != "" && p.line(p.tok.from) == line {
		end := p.tok.text == ";"
		if err := p.advance(); err != nil || end {
			return err
		}
	}
	return nil
}

// guard reads the predicate of an instruction and returns its operation code.
func (p *parser) guard(in *instruction) (token, error) {
	if p.tok.text == "!" {
		in.negated = true
		if err := p.advance(); err != nil {
			return token{}, err
		}
	}
	in.guard = p.tok.text
	if in.guard == "" || !isWordByte(in.guard[0]) {
		return token{}, p.refuse(p.tok.from, models.Say("“@” needs a predicate"))
	}
	if err := p.advance(); err != nil {
		return token{}, err
	}
	opcode := p.tok
	if opcode.text == "" || !isWordByte(opcode.text[0]) {
		return token{}, p.refuse(opcode.from, models.Say("the predicate has no instruction"))
	}
	return opcode, p.advance()
}
