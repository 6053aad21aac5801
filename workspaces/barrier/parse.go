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
	labels map[string]int      // index of the instruction after a label
	lists  map[string][]string // labels in each .branchtargets
	named  map[string]bool
}

// instruction is one statement of a function.
type instruction struct {
	line     int
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

// refuse is an error about the line with a byte.
func (l *lexer) refuse(at int, reason models.Text) error {
	return refuse(1+strings.Count(l.source[:at], "\n"), reason)
}

// refuse is an error about a line.
func refuse(line int, reason models.Text) error {
	return models.Invalid("ptx", "line %d: %s", line, reason)
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
	f := &function{entry: p.tok.text == ".entry", line: p.line(p.tok.from), labels: map[string]int{},
		lists: map[string][]string{}, named: map[string]bool{}}
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

// body reads statements up to the brace that closes the function.
func (p *parser) body(f *function) error {
	depth := 1
	if err := p.advance(); err != nil {
		return err
	}
	for {
		switch p.tok.text {
		case "":
			return p.refuse(p.tok.from, models.Say("the function has no end"))
		case "{":
			depth++
		case "}":
			if depth--; depth == 0 {
				return p.advance()
			}
		case ";":
		case barDirective:
			if err := p.declaration(f.named); err != nil {
				return err
			}
			continue
		default:
			if err := p.statement(f); err != nil {
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
func (p *parser) statement(f *function) error {
	first := p.tok
	if err := p.advance(); err != nil {
		return err
	}
	if p.tok.text == ":" {
		return p.label(f, first)
	}
	in := instruction{line: p.line(first.from)}
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
func (p *parser) label(f *function, name token) error {
	if _, twice := f.labels[name.text]; twice {
		return p.refuse(name.from, models.Say("label %s is defined twice", name.text))
	}
	f.labels[name.text] = len(f.code)
	if err := p.advance(); err != nil || p.tok.text != ".branchtargets" {
		return err
	}
	if err := p.statement(f); err != nil {
		return err
	}
	list := f.code[len(f.code)-1]
	f.code = f.code[:len(f.code)-1]
	for _, operand := range list.operands {
		if len(operand) != 1 {
			return refuse(list.line, models.Say("write the labels of .branchtargets one by one"))
		}
		f.lists[name.text] = append(f.lists[name.text], operand[0].text)
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
