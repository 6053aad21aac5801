package local

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data of a little-endian machine.
const (
	offsetCall = 0
	offsetArch = 4
	offsetArgs = 16
)

// x32Calls is the first number of the calls of programs with 32-bit pointers on x86-64.
const x32Calls = 0x40000000

func deny(errno unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

// processID are the bits of a register that the kernel reads as a process id.
const processID = 0xffffffff

// systemCalls is the filter of system calls as the kernel reads it: the default profile of
// containers, for programs without capabilities, and for the architecture of this program:
// others, such as 32-bit programs on x86-64, can call nothing. Beyond the profile, ptrace
// cannot stop pid 1 of the sandbox, which reaps and ends what runs in it. Calls that the
// profile does not allow fail with EPERM, and those that the table does not know, because
// they are newer, with ENOSYS, by which libraries know that they must do without.
var systemCalls = sync.OnceValues(func() ([]byte, error) {
	profile, err := seccomp.GetDefaultProfile(&specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{}}})
	if err != nil {
		return nil, err
	}
	machine, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	refused := uint(unix.EPERM)
	supervisor := specs.LinuxSyscall{Names: []string{"ptrace"}, Action: specs.ActErrno, ErrnoRet: &refused,
		Args: []specs.LinuxSeccompArg{{Index: 1, Value: processID, ValueTwo: 1, Op: specs.OpMaskedEqual}}}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(machine.ID), SkipTrue: 1}, deny(unix.EPERM),
		bpf.LoadAbsolute{Off: offsetCall, Size: 4}, bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32Calls, SkipTrue: 1}, deny(unix.ENOSYS),
	}
	for _, rule := range append([]specs.LinuxSyscall{supervisor}, profile.Syscalls...) {
		block, err := ruleBlock(rule)
		if err != nil {
			return nil, err
		}
		for _, name := range rule.Names {
			if number, ok := machine.SyscallNames[name]; ok {
				program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(number), SkipFalse: uint8(len(block))})
				program = append(program, block...)
			}
		}
	}
	raw, err := bpf.Assemble(append(program, otherCalls(machine)...))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = binary.Write(&b, binary.NativeEndian, raw) // struct sock_filter
	return b.Bytes(), err
})

// otherCalls are the instructions for calls that no rule has decided.
func otherCalls(machine *arch.Info) (program []bpf.Instruction) {
	numbers := slices.Sorted(maps.Values(machine.SyscallNames))
	for first := 0; first < len(numbers); {
		last := first
		for last+1 < len(numbers) && numbers[last+1] <= numbers[last]+1 {
			last++
		}
		program = append(program, bpf.JumpIf{Cond: bpf.JumpLessThan, Val: uint32(numbers[first]), SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: uint32(numbers[last]), SkipTrue: 1}, deny(unix.EPERM))
		first = last + 1
	}
	return append(program, deny(unix.ENOSYS))
}

// ruleBlock are the instructions for a call that a rule names: they check its arguments and
// return the action. If an argument differs, they load the number of the call again.
func ruleBlock(rule specs.LinuxSyscall) (block []bpf.Instruction, err error) {
	action := bpf.Instruction(bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
	if rule.Action == specs.ActErrno && rule.ErrnoRet != nil {
		action = deny(unix.Errno(*rule.ErrnoRet))
	} else if rule.Action != specs.ActAllow {
		return nil, fmt.Errorf("seccomp: action %s", rule.Action)
	}
	if len(rule.Args) == 0 {
		return []bpf.Instruction{action}, nil
	}
	block = []bpf.Instruction{action, bpf.LoadAbsolute{Off: offsetCall, Size: 4}}
	for _, arg := range rule.Args {
		check, err := argumentCheck(arg, uint8(len(block)-1))
		if err != nil {
			return nil, err
		}
		block = append(check, block...)
	}
	return block, nil
}

// argumentCheck compares an argument of 64 bits. Where it differs, skip instructions after
// the check are left out. What the profile orders or excludes are the domains of sockets, of
// which the kernel reads 32 bits: others are not compared, for they could be set at will.
func argumentCheck(arg specs.LinuxSeccompArg, skip uint8) ([]bpf.Instruction, error) {
	low := bpf.LoadAbsolute{Off: uint32(offsetArgs + 8*arg.Index), Size: 4}
	high := bpf.LoadAbsolute{Off: low.Off + 4, Size: 4}
	value, valueHigh := uint32(arg.Value), uint32(arg.Value>>32)
	switch arg.Op {
	case specs.OpEqualTo:
		return []bpf.Instruction{high, bpf.JumpIf{Cond: bpf.JumpEqual, Val: valueHigh, SkipFalse: skip + 2},
			low, bpf.JumpIf{Cond: bpf.JumpEqual, Val: value, SkipFalse: skip}}, nil
	case specs.OpNotEqual:
		return []bpf.Instruction{low, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: value, SkipFalse: skip}}, nil
	case specs.OpMaskedEqual:
		return []bpf.Instruction{high, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: valueHigh},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(arg.ValueTwo >> 32), SkipFalse: skip + 3},
			low, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: value},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(arg.ValueTwo), SkipFalse: skip}}, nil
	case specs.OpLessThan:
		return []bpf.Instruction{low, bpf.JumpIf{Cond: bpf.JumpLessThan, Val: value, SkipFalse: skip}}, nil
	case specs.OpGreaterThan:
		return []bpf.Instruction{low, bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: value, SkipFalse: skip}}, nil
	}
	return nil, fmt.Errorf("seccomp: operator %s", arg.Op)
}

// filterCalls installs the filter of system calls.
func (s *sandbox) filterCalls() {
	filter, err := systemCalls()
	var f *os.File
	if err == nil {
		f, err = memoryFile("seccomp", string(filter))
	}
	if err != nil {
		s.fail(fmt.Errorf("the filter of system calls: %w", err))
		return
	}
	s.add("--seccomp", s.inherit(f))
}
