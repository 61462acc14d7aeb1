//go:build linux

package confine

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The filter is a program that the kernel runs at each system call:
//
//	other architecture, or x32                → ENOSYS
//	a call with a rule                        → its tests, each of which ends in a verdict
//	a call in a run of allowed numbers        → allowed
//	absent, or newer than everything we know  → ENOSYS
//	else                                      → EPERM
//
// The assembler of policies of go-seccomp-bpf is not used: after a rule whose tests fail it goes on to compare the numbers of
// other calls with the argument that is in the accumulator, which lets callers choose an argument that is the number of an
// allowed call. Here a rule never goes on.

// Offsets in what the kernel shows of a call, on little-endian machines.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
	argBytes  = 8
)

const x32Bit = 0x40000000

// filter assembles the program for an architecture, by Go's name of it.
func filter(goarch string, t tables) ([]bpf.Instruction, error) {
	on, err := architectureOf(goarch)
	if err != nil {
		return nil, err
	}
	refuse := func(e unix.Errno) bpf.Instruction { return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(e)} }
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: on.id, SkipTrue: 1},
		refuse(unix.ENOSYS),
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: min(x32Bit, on.newest+1), SkipTrue: 1},
		refuse(unix.ENOSYS),
	}
	for _, r := range t.ruled {
		if number, ok := on.number(r.name); ok {
			program = append(program, ruleFor(number, r)...)
		}
	}
	for _, number := range on.numbers(t.absent) {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, refuse(unix.ENOSYS))
	}
	for _, run := range runs(on.numbers(t.allowed)) {
		program = append(
			program,
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: run[0], SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: run[1], SkipTrue: 1},
			bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
		)
	}
	return append(program, refuse(unix.EPERM)), nil
}

// tables are the data of a filter.
type tables struct {
	allowed, absent []string
	ruled           []rule
}

// product are the data of sandboxes. Where steps have the id of pid 1, they set the limits of their own process alone.
func product(mapped bool) tables {
	t := tables{allowed: allowed, absent: absent, ruled: ruled}
	if mapped {
		return t
	}
	t.ruled = append(slices.Clone(ruled), ownLimits)
	t.allowed = slices.DeleteFunc(slices.Clone(allowed), func(name string) bool { return name == ownLimits.name })
	return t
}

// ruleFor tests one call and ends in a verdict for it.
func ruleFor(number uint32, r rule) []bpf.Instruction {
	var body []bpf.Instruction
	for _, c := range r.cases {
		body = append(body, caseFor(c)...)
	}
	body = append(body, bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(r.refusal)})
	// The way past the body may be longer than a conditional jump reaches.
	return append([]bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipTrue: 1},
		bpf.Jump{Skip: uint32(len(body))},
	}, body...)
}

// caseFor allows the call if all tests hold, and goes on to what follows if one does not.
func caseFor(c cond) []bpf.Instruction {
	const perTest = 3
	var code []bpf.Instruction
	for i, t := range c {
		past := uint8((len(c)-i-1)*perTest + 1) // the tests that are left, and the verdict
		jump := bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: t.want, SkipTrue: past}
		if t.not {
			jump.Cond = bpf.JumpEqual
		}
		code = append(
			code,
			bpf.LoadAbsolute{Off: offArgs + argBytes*t.arg, Size: 4},
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: t.mask},
			jump,
		)
	}
	return append(code, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
}

// numbers are those that an architecture gives to names, sorted.
func (a architecture) numbers(names []string) []uint32 {
	var known []uint32
	for _, name := range names {
		if number, ok := a.number(name); ok {
			known = append(known, number)
		}
	}
	slices.Sort(known)
	return known
}

// runs joins neighbours into first and last number.
func runs(sorted []uint32) [][2]uint32 {
	var joined [][2]uint32
	for _, n := range sorted {
		if last := len(joined) - 1; last >= 0 && joined[last][1]+1 == n {
			joined[last][1] = n
			continue
		}
		joined = append(joined, [2]uint32{n, n})
	}
	return joined
}

// Filter is the filter of this machine, assembled, for Walls that are Mapped or not. Whoever makes many sandboxes does so once
// for all of them.
func Filter(mapped bool) ([]byte, error) {
	code, err := assembled(product(mapped))
	if err != nil {
		return nil, err
	}
	var all []byte
	for _, c := range code {
		all = binary.LittleEndian.AppendUint16(all, c.Code)
		all = append(all, c.Jt, c.Jf)
		all = binary.LittleEndian.AppendUint32(all, c.K)
	}
	return all, nil
}

// instructionBytes is the length of an instruction in what Filter returns.
const instructionBytes = 8

// read takes what Filter returned apart.
func read(all []byte) ([]unix.SockFilter, error) {
	if len(all)%instructionBytes != 0 || len(all)/instructionBytes > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("the filter of system calls has %d bytes", len(all))
	}
	code := make([]unix.SockFilter, 0, len(all)/instructionBytes)
	for ; len(all) > 0; all = all[instructionBytes:] {
		code = append(code, unix.SockFilter{
			Code: binary.LittleEndian.Uint16(all), Jt: all[2], Jf: all[3], K: binary.LittleEndian.Uint32(all[4:]),
		})
	}
	return code, nil
}

// assembled is the filter of this machine as the kernel takes it.
func assembled(t tables) ([]unix.SockFilter, error) {
	program, err := filter(runtime.GOARCH, t)
	if err != nil {
		return nil, err
	}
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("assemble the filter of system calls: %w", err)
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return code, nil
}
