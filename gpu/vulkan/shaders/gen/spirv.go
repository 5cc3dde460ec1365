package main

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// Instructions of SPIR-V that say what a caller must know. Numbers: the SPIR-V specification, section 3.
const (
	opName             = 5
	opMemberName       = 6
	opTypeInt          = 21
	opTypeFloat        = 22
	opTypeStruct       = 30
	opTypePointer      = 32
	opSpecConstant     = 50
	opVariable         = 59
	opDecorate         = 71
	opMemberDecorate   = 72
	decorationSpecID   = 1
	decorationOffset   = 35
	storagePush        = 9
	storagePhysical    = 5349
	magic              = 0x07230203
	headerWords        = 5
	forwardPointerType = 39
)

// field is a member of a push-constant block, or a specialisation constant with its id as offset.
type field struct {
	name   string
	offset uint32
	kind   string // Go's type
	value  uint32 // of a constant, where none is given
}

// shape is what a caller must know of a module.
type shape struct{ push, constants []field }

// reader holds what was read of a module, by result id.
type reader struct {
	names       map[uint32]string
	memberNames map[[2]uint32]string
	offsets     map[[2]uint32]uint32
	specIDs     map[uint32]uint32
	kinds       map[uint32]string
	members     map[uint32][]uint32
	pointee     map[uint32]uint32
	push        uint32 // the type of the push-constant variable
	shape       shape
}

// reflect reads a module.
func reflect(code []byte) (shape, error) {
	r := &reader{names: map[uint32]string{}, memberNames: map[[2]uint32]string{}, offsets: map[[2]uint32]uint32{},
		specIDs: map[uint32]uint32{}, kinds: map[uint32]string{}, members: map[uint32][]uint32{}, pointee: map[uint32]uint32{}}
	words := make([]uint32, len(code)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(code[4*i:])
	}
	if len(words) < headerWords || words[0] != magic {
		return shape{}, fmt.Errorf("is no SPIR-V")
	}
	for i := headerWords; i < len(words); {
		n := int(words[i] >> 16)
		if n == 0 || i+n > len(words) {
			return shape{}, fmt.Errorf("word %d: an instruction of %d words, %d are left", i, n, len(words)-i)
		}
		if err := r.instruction(words[i]&0xffff, words[i+1:i+n]); err != nil {
			return shape{}, err
		}
		i += n
	}
	return r.finish()
}

func (r *reader) instruction(op uint32, a []uint32) error {
	switch op {
	case opName:
		r.names[a[0]] = literal(a[1:])
	case opMemberName:
		r.memberNames[[2]uint32{a[0], a[1]}] = literal(a[2:])
	case opDecorate:
		if a[1] == decorationSpecID {
			r.specIDs[a[0]] = a[2]
		}
	case opMemberDecorate:
		if a[2] == decorationOffset {
			r.offsets[[2]uint32{a[0], a[1]}] = a[3]
		}
	case opTypeInt:
		r.kinds[a[0]] = map[[2]uint32]string{{32, 0}: "uint32", {32, 1}: "int32", {64, 0}: "uint64"}[[2]uint32{a[1], a[2]}]
	case opTypeFloat:
		if a[1] == 32 {
			r.kinds[a[0]] = "float32"
		}
	case opTypeStruct:
		r.members[a[0]] = a[1:]
	case forwardPointerType:
		if a[1] == storagePhysical {
			r.kinds[a[0]] = "uint64"
		}
	case opTypePointer:
		r.pointee[a[0]] = a[2]
		if a[1] == storagePhysical {
			r.kinds[a[0]] = "uint64"
		}
	case opVariable:
		if a[2] == storagePush {
			r.push = r.pointee[a[0]]
		}
	case opSpecConstant:
		return r.constant(a)
	}
	return nil
}

func (r *reader) constant(a []uint32) error {
	id, ok := r.specIDs[a[1]]
	if !ok {
		return fmt.Errorf("constant %q has no id", r.names[a[1]])
	}
	name := r.names[a[1]]
	kind := r.kinds[a[0]]
	if kind != "uint32" && kind != "int32" {
		return fmt.Errorf("constant %s is no whole number of 32 bits", name)
	}
	r.shape.constants = append(r.shape.constants, field{name, id, kind, a[2]})
	return nil
}

func (r *reader) finish() (shape, error) {
	slices.SortFunc(r.shape.constants, func(a, b field) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), -cmp.Compare(a.name, b.name))
	})
	// glslang repeats the constant of the workgroup's size, with its name and without.
	r.shape.constants = slices.CompactFunc(r.shape.constants, func(a, b field) bool { return a.offset == b.offset })
	for i, c := range r.shape.constants {
		if c.offset != uint32(i) {
			return shape{}, fmt.Errorf("constant %s has id %d: want ids from 0 without gaps", c.name, c.offset)
		}
	}
	for i, t := range r.members[r.push] {
		at := [2]uint32{r.push, uint32(i)}
		if r.kinds[t] == "" {
			return shape{}, fmt.Errorf("push constant %s has a type that Go is not told of", r.memberNames[at])
		}
		r.shape.push = append(r.shape.push, field{name: r.memberNames[at], offset: r.offsets[at], kind: r.kinds[t]})
	}
	return r.shape, nil
}

// literal is a string as SPIR-V stores it.
func literal(words []uint32) string {
	var b []byte
	for _, w := range words {
		for i := range 4 {
			c := byte(w >> (8 * i))
			if c == 0 {
				return string(b)
			}
			b = append(b, c)
		}
	}
	return string(b)
}
