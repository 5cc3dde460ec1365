package asm

import "fmt"

// Constant is a word for all lanes.
type Constant struct {
	Name string
	Word uint32
}

// Data writes a symbol of the file, of words of 8 bytes.
func (e *Emitter) Data(name string, words ...uint64) {
	for i, w := range words {
		e.Line("DATA %s<>+%d(SB)/8, $0x%016x", name, 8*i, w)
	}
	e.Line("GLOBL %s<>(SB), RODATA|NOPTR, $%d", name, 8*len(words))
}

// Constants writes a table, so many bytes of each. They are operands themselves if these fill a register; else they must
// be held.
func (e *Emitter) Constants(table []Constant, bytes int) {
	e.bytes = bytes
	e.F("")
	for _, c := range table {
		words := make([]uint64, bytes/8)
		for i := range words {
			words[i] = uint64(c.Word)<<32 | uint64(c.Word)
		}
		e.Data(c.Name, words...)
	}
}

// Hold loads constants into registers, by the given instruction, for the whole routine.
func (e *Emitter) Hold(load string, names ...string) {
	for _, name := range names {
		if _, ok := e.held[name]; !ok {
			r := e.Reg()
			e.F("%s %s<>(SB), %s", load, name, r)
			e.held[name] = r
		}
	}
}

// Held is the register of a constant, if it is in one.
func (e *Emitter) Held(name string) (register string, ok bool) {
	register, ok = e.held[name]
	return register, ok
}

// Const is a constant: its register, else its memory.
func (e *Emitter) Const(name string) string {
	r, held := e.held[name]
	switch {
	case held:
		return r
	case e.bytes < e.Width():
		panic(fmt.Sprintf("%s is not held, and has %d bytes", name, e.bytes))
	}
	return name + "<>(SB)"
}
