// Command probe writes the assembly of cpu/probe: loops that read, or multiply, and do nothing else.
package main

import (
	"flag"
	"log"

	"github.com/sluice-ai/sluice/cpu/gen/asm"
)

// writer writes loops for one instruction set after another.
type writer struct{ *asm.Emitter }

func main() {
	dir := flag.String("o", ".", "folder to write to")
	flag.Parse()
	w := writer{asm.New(asm.AVX2, "cpu/gen/probe")}
	w.read()
	w.multiplyWords()
	w.ISA = asm.AVX512
	w.read()
	w.ISA = asm.VNNI
	w.multiplyVNNI()
	w.ISA = asm.AMX
	w.multiplyAMX()
	if err := w.Write(*dir, "probe_gen.s"); err != nil {
		log.Fatal(err)
	}
}

// read reads a cache line of each stream in turn.
func (w writer) read() {
	w.Begin("read", "(p *byte, stride, n int)")
	streams := []string{w.Arg("p"), "R9", "R10", "R11"}
	for i, r := range streams[1:] {
		w.F("LEAQ (%s)(%s*1), %s", streams[i], w.Arg("stride"), r)
	}
	w.F("XORL AX, AX")
	w.F("line:")
	for _, r := range streams {
		w.Op("VMOVUPS", w.Mem(0, "("+r+")(AX*1)", 4, 16), w.Vec(16))
	}
	w.F("ADDQ $64, AX")
	w.F("CMPQ AX, %s", w.Arg("n"))
	w.F("JLT line")
	w.End()
}

// registers takes some registers and clears them: what is multiplied takes no time.
func (w writer) registers(n int) []asm.Vec {
	all := make([]asm.Vec, n)
	for i := range all {
		all[i] = w.Zero(w.Lanes)
	}
	return all
}

// multiplyWords multiplies 12 registers, and adds the products of 16 bits to sums.
func (w writer) multiplyWords() {
	w.Begin("multiply", "(rounds int)")
	factors, products, sums := w.registers(2), w.registers(6), w.registers(6)
	w.Times("rounds", func() {
		for range 2 {
			for _, p := range products {
				w.Op("VPMADDUBSW", factors[0], factors[1], p)
			}
			for i, s := range sums {
				w.Op("VPADDW", products[i], s, s)
			}
		}
	})
	w.End()
}

// multiplyVNNI adds the products of 12 registers to sums.
func (w writer) multiplyVNNI() {
	w.Begin("multiply", "(rounds int)")
	factors, sums := w.registers(2), w.registers(12)
	w.Times("rounds", func() {
		for _, s := range sums {
			w.Op("VPDPBUSD", factors[0], factors[1], s)
		}
	})
	w.End()
}

// multiplyAMX adds the products of tiles 6 and 7 to the others. The assembler does not know these instructions.
func (w writer) multiplyAMX() {
	w.Begin("multiply", "(config *byte, rounds int)")
	w.code(0x78, 0x49, 0x07) // LDTILECFG (DI)
	for tile := range 8 {
		w.code(0x7b, 0x49, 0xc0|tile<<3) // TILEZERO
	}
	w.Times("rounds", func() {
		for tile := range 6 {
			w.code(0x43, 0x5e, 0xc6|tile<<3) // TDPBSSD
		}
	})
	w.code(0x78, 0x49, 0xc0) // TILERELEASE
	w.F("RET")
}

// code writes an instruction of opcode map 0f38: the last byte of its prefix, its opcode and operands.
func (w writer) code(prefix, opcode, operands int) {
	w.F("BYTE $0xc4; BYTE $0xe2; BYTE $%#02x; BYTE $%#02x; BYTE $%#02x", prefix, opcode, operands)
}
