package barrier

import (
	"strconv"
	"strings"

	"weir/models"
)

// kind is what an instruction does with a barrier.
type kind int

const (
	arrives kind = iota // does not wait
	waits
	reduces // waits for the result of a reduction
)

var kindWords = []string{"arrive", "sync", "red"}

func (k kind) String() string { return kindWords[k] }

// Numbers of threads that are no numbers.
const (
	allThreads   = 0
	threadsInReg = -1 // known when the kernel runs
)

// operation is an instruction that uses a barrier.
type operation struct {
	line    int
	kind    kind
	barrier string // the number without leading zeros, or the name
	threads int    // that take part, allThreads or threadsInReg
	id      token  // where the barrier stands in the source
}

// operationOf reads an instruction; nil: it uses no barrier of the thread block. The forms
// are bar{.cta}.sync|arrive|red and barrier{.cta}.sync|arrive|red{.aligned}; bar.warp.sync
// and barrier.cluster are others.
func operationOf(in instruction, named func(string) bool) (*operation, error) {
	parts := strings.Split(in.opcode, ".")
	if parts[0] != "bar" && parts[0] != "barrier" {
		return nil, nil
	}
	if parts = parts[1:]; len(parts) > 0 && parts[0] == "cta" {
		parts = parts[1:]
	}
	if len(parts) == 0 {
		return nil, refuse(in.line, models.Say("%s is no form of a barrier that PTX knows", in.opcode))
	}
	op, operands := &operation{line: in.line}, in.operands
	switch parts[0] {
	case "sync":
		op.kind = waits
	case "arrive":
		op.kind = arrives
	case "red":
		op.kind = reduces
		if len(operands) < 3 || len(operands) > 4 {
			return nil, refuse(in.line, models.Say("%s needs 3 or 4 operands", in.opcode))
		}
		operands = operands[1 : len(operands)-1]
	case "warp", "cluster":
		return nil, nil
	default:
		return nil, refuse(in.line, models.Say("%s is no form of a barrier that PTX knows", in.opcode))
	}
	if len(operands) < 1 || len(operands) > 2 {
		return nil, refuse(in.line, models.Say("%s needs a barrier and at most a number of threads", in.opcode))
	}
	if err := op.name(operands[0], named); err != nil {
		return nil, err
	}
	return op, op.count(operands[1:])
}

// name reads the operand that is the barrier.
func (op *operation) name(operand []token, named func(string) bool) error {
	if len(operand) != 1 {
		return refuse(op.line, models.Say("the barrier must be a number or a name, not an expression"))
	}
	op.id = operand[0]
	text := op.id.text
	if n, ok := integer(text); ok {
		op.barrier = strconv.FormatInt(n, 10)
		return nil
	}
	if !named(text) {
		return refuse(op.line,
			models.Say("the barrier is in register %s, so it is not known which one it is; write its number, or declare a name with %s",
				text, barDirective))
	}
	op.barrier = text
	return nil
}

// count reads the operand that is the number of threads, if there is one.
func (op *operation) count(operands [][]token) error {
	if len(operands) == 0 {
		if op.kind == arrives {
			return refuse(op.line, models.Say("an arrival needs the number of threads"))
		}
		return nil
	}
	if len(operands[0]) != 1 {
		return refuse(op.line, models.Say("the number of threads must be a number or a register, not an expression"))
	}
	n, ok := integer(operands[0][0].text)
	switch {
	case !ok:
		op.threads = threadsInReg
	case n < 1 || n > maxThreads || n%warpSize != 0:
		return refuse(op.line, models.Say("the number of threads is %d; it must be a multiple of %d up to %d", n, warpSize, maxThreads))
	default:
		op.threads = int(n)
	}
	return nil
}
