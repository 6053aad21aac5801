package barrier

import (
	"slices"
	"strings"
)

// classes groups the warps of a block by the ways that they go. Without the number of
// threads there is one class of unknown size.
func (g *flow) classes(shape [3]int) []*class {
	threads := shape[0] * shape[1] * shape[2]
	if threads == 0 {
		return []*class{g.newClass(slices.Repeat([]int8{-1}, len(g.nodes)))}
	}
	defined := definitions(g.code)
	var list []*class
	found := map[string]*class{}
	for w := range (threads + warpSize - 1) / warpSize {
		e := evaluator{code: g.code, defined: defined, shape: shape, first: w * warpSize, lanes: min(warpSize,
			threads-w*warpSize), known: map[string]*value{}}
		decisions := make([]int8, len(g.nodes))
		key := make([]byte, len(g.nodes))
		for i, n := range g.nodes {
			decisions[i] = e.decide(n)
			key[i] = byte(decisions[i] + 1)
		}
		c := found[string(key)]
		if c == nil {
			c = g.newClass(decisions)
			found[string(key)] = c
			list = append(list, c)
		}
		c.warps = append(c.warps, w)
	}
	return list
}

// definitions finds the only instruction that defines each register; -1: there are several.
// Directives, which declare registers, are none.
func definitions(code []instruction) map[string]int {
	defined := map[string]int{}
	for i, in := range code {
		if strings.HasPrefix(in.opcode, ".") {
			continue
		}
		for _, name := range words(in, 0) {
			if _, twice := defined[name]; twice || in.guard != "" {
				defined[name] = -1
			} else {
				defined[name] = i
			}
		}
	}
	return defined
}

// value is a register in each lane of a warp.
type value [warpSize]int64

// maxDepth bounds how many registers one depends on, each by another.
const maxDepth = 1000

// evaluator computes registers of one warp that follow from the numbers of its threads.
type evaluator struct {
	code    []instruction
	defined map[string]int
	shape   [3]int
	first   int // number of the warp's first thread
	lanes   int
	known   map[string]*value // nil: cannot be computed
	depth   int               // of the register that is computed
}

// decide returns whether a warp takes a branch: 1, 0, or -1 if that is not known or not
// the same for its threads.
func (e *evaluator) decide(n node) int8 {
	if n.op >= 0 || n.guard == "" {
		return -1
	}
	v := e.register(n.guard)
	if v == nil {
		return -1
	}
	for _, lane := range v[:e.lanes] {
		if lane != v[0] {
			return -1
		}
	}
	if (v[0] != 0) != n.negated {
		return 1
	}
	return 0
}

// special computes a special register from the number of a thread.
func (e *evaluator) special(name string, thread int) (int, bool) {
	x, y := e.shape[0], e.shape[1]
	switch name {
	case "%tid.x":
		return thread % x, true
	case "%tid.y":
		return thread / x % y, true
	case "%tid.z":
		return thread / x / y, true
	case "%ntid.x":
		return x, true
	case "%ntid.y":
		return y, true
	case "%ntid.z":
		return e.shape[2], true
	case "%laneid":
		return thread % warpSize, true
	case "WARP_SZ":
		return warpSize, true
	}
	return 0, false
}

// register computes a register or a number; nil: it cannot be computed.
func (e *evaluator) register(name string) *value {
	if v, ok := e.known[name]; ok {
		return v
	}
	e.known[name] = nil // while it is computed, and if it depends on itself
	var v value
	for lane := range v {
		if n, ok := integer(name); ok {
			v[lane] = n
		} else if n, ok := e.special(name, e.first+lane); ok {
			v[lane] = int64(n)
		} else {
			i, ok := e.defined[name]
			if !ok || i < 0 || e.depth == maxDepth {
				return nil
			}
			e.depth++
			e.known[name] = e.compute(e.code[i], name)
			e.depth--
			return e.known[name]
		}
	}
	e.known[name] = &v
	return &v
}

// compute evaluates an instruction that defines one register.
func (e *evaluator) compute(in instruction, name string) *value {
	parts := strings.Split(in.opcode, ".")
	kind := parts[len(parts)-1]
	var sources []*value
	for i := range in.operands[1:] {
		list := words(in, i+1)
		if len(list) == 2 && list[0] == "-" {
			list = []string{"-" + list[1]}
		}
		if len(list) != 1 {
			return nil
		}
		v := e.register(strings.TrimPrefix(list[0], "-"))
		if v == nil {
			return nil
		}
		sources = append(sources, v)
		if list[0][0] == '-' {
			negative := *v
			for lane := range negative {
				negative[lane] = -negative[lane]
			}
			sources[i] = &negative
		}
	}
	if target := words(in, 0); target[0] != name || len(target) > 1 && parts[0] != "shfl" {
		return nil
	}
	if strings.HasPrefix(in.opcode, "shfl.sync.idx.") && len(sources) == 4 && sources[1][0] == 0 {
		return new(value(slices.Repeat(sources[0][:1], warpSize)))
	}
	return compute(parts, kind, sources)
}

// arity is how many sources each operation has that is evaluated.
var arity = map[string]int{"mov": 1, "cvt": 1, "not": 1, "add": 2, "sub": 2, "mul": 2, "and": 2, "or": 2, "xor": 2,
	"shl": 2, "shr": 2, "div": 2, "rem": 2,
	"min": 2, "max": 2, "setp": 2, "mad": 3}

func compute(parts []string, kind string, sources []*value) *value {
	if arity[parts[0]] != len(sources) || len(sources) == 0 {
		return nil
	}
	var v value
	for lane := range v {
		var n [3]int64
		for i, s := range sources {
			var ok bool
			if n[i], ok = wrap(s[lane], kind); !ok {
				return nil
			}
		}
		result, ok := apply(parts, kind, n)
		if !ok {
			return nil
		}
		v[lane] = result
	}
	return &v
}

// wrap is a number as a value of a type of PTX.
func wrap(n int64, kind string) (int64, bool) {
	switch kind {
	case "u16", "b16":
		return int64(uint16(n)), true
	case "s16":
		return int64(int16(n)), true
	case "u32", "b32":
		return int64(uint32(n)), true
	case "s32":
		return int64(int32(n)), true
	case "u64", "s64", "b64":
		return n, n >= 0 || kind == "s64" // numbers this large do not come from threads
	case "pred":
		if n != 0 {
			n = 1
		}
		return n, true
	}
	return 0, false
}

// apply computes one operation on wrapped sources.
func apply(parts []string, kind string, n [3]int64) (int64, bool) {
	a, b := n[0], n[1]
	result := int64(0)
	switch parts[0] {
	case "mov":
		result = a
	case "cvt":
		if len(parts) != 3 {
			return 0, false
		}
		result, kind = a, parts[1]
	case "not":
		if result = ^a; kind == "pred" {
			result = 1 - a
		}
	case "add":
		result = a + b
	case "sub":
		result = a - b
	case "mul", "mad":
		if parts[1] != "lo" {
			return 0, false
		}
		result = a*b + n[2]
	case "and":
		result = a & b
	case "or":
		result = a | b
	case "xor":
		result = a ^ b
	case "min":
		result = min(a, b)
	case "max":
		result = max(a, b)
	case "shl", "shr", "div", "rem":
		return divide(parts[0], kind, a, b)
	case "setp":
		return compare(parts, a, b)
	}
	return wrap(result, kind)
}

// divide computes what is not defined for all second sources.
func divide(operation, kind string, a, b int64) (int64, bool) {
	if b < 0 || b > 1<<16 || (operation == "div" || operation == "rem") && b == 0 {
		return 0, false
	}
	switch operation {
	case "shl":
		return wrap(a<<b, kind)
	case "shr":
		return wrap(a>>b, kind)
	case "div":
		return wrap(a/b, kind)
	default:
		return wrap(a%b, kind)
	}
}

// compare computes setp.OPERATOR.TYPE.
func compare(parts []string, a, b int64) (int64, bool) {
	if len(parts) != 3 {
		return 0, false
	}
	holds := false
	switch parts[1] {
	case "eq":
		holds = a == b
	case "ne":
		holds = a != b
	case "lt", "lo":
		holds = a < b
	case "le", "ls":
		holds = a <= b
	case "gt", "hi":
		holds = a > b
	case "ge", "hs":
		holds = a >= b
	default:
		return 0, false
	}
	if holds {
		return 1, true
	}
	return 0, true
}
