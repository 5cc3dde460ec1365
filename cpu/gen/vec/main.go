// Command vec writes the assembly of cpu/vec: each routine once, for both instruction sets.
//
// What a routine computes is that of its twin in package vec, operation by operation.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/cpu/gen/asm"
)

const (
	generator = "cpu/gen/vec"
	block     = 64 // Block of package vec
)

// writer writes the routines of an instruction set.
type writer struct{ *asm.Emitter }

func main() {
	dir := flag.String("o", ".", "folder to write to")
	flag.Parse()
	if err := run(*dir); err != nil {
		log.Fatal(err)
	}
}

// run writes an assembly file for each instruction set, and declarations for Go: of the routines, and of what stands for
// them where there is no assembly.
func run(dir string) error {
	var stubs, others strings.Builder
	stubs.WriteString(asm.Header(generator, "amd64 && !purego") + "package vec\n")
	others.WriteString(asm.Header(generator, "!amd64 || purego") + "package vec\n")
	for _, isa := range []asm.ISA{asm.AVX2, asm.AVX512} {
		w := writer{asm.New(isa, generator)}
		w.Constants(slices.Concat(constants, tails, bytesConstants), constantBytes[isa.Lanes])
		w.rows()
		w.recur()
		choice := w.panels()
		w.Data("oddSigns", signs(1)...)
		w.Data("pairSigns", signs(2)...)
		w.Data("highSigns", signs(4)...)
		keys, values := w.coded()
		for _, d := range w.Declared {
			fmt.Fprintf(&stubs, "\n//go:noescape\nfunc %s%s\n", d.Name, d.Signature)
			fmt.Fprintf(&others, "\nfunc %s%s { panic(nothing) }\n", d.Name, d.Signature)
		}
		panel := fmt.Sprintf("\n// run%s multiplies groups of so many rows by elements of so many bytes.\n"+
			"func run%[1]s(p *panel, rows, size int)", isa.Suffix)
		fmt.Fprintf(&stubs, "%s {\n\tswitch {\n%s\t}\n}\n", panel, choice)
		fmt.Fprintf(&others, "%s { panic(nothing) }\n", panel)
		for _, of := range [][3]string{{"Keys", "key", keys}, {"Values", "value", values}} {
			run := fmt.Sprintf("\n// run%s%s multiplies groups of so many rows by codes.\n"+
				"func run%[1]s%[2]s(p *%[3]sProduct, bits, rows int, book bool)", of[0], isa.Suffix, of[1])
			fmt.Fprintf(&stubs, "%s {\n\tswitch {\n%s\t}\n}\n", run, of[2])
			fmt.Fprintf(&others, "%s { panic(nothing) }\n", run)
		}
		if err := w.Write(dir, isa.Name+"_gen.s"); err != nil {
			return err
		}
	}
	return errors.Join(asm.WriteGo(dir, "stubs_gen.go", stubs.String()), asm.WriteGo(dir, "others_gen.go", others.String()))
}

// signs flips those of 8 lanes whose number has a bit.
func signs(bit int) (words []uint64) {
	for i := 0; i < 8; i += 2 {
		word := uint64(0)
		for j := range 2 {
			if (i+j)&bit != 0 {
				word |= 1 << (32*j + 31)
			}
		}
		words = append(words, word)
	}
	return words
}

// rows writes all that works on rows.
func (w writer) rows() {
	w.sum()
	w.sumSquares()
	w.largest()
	w.ofTwo("add", "VADDPS")
	w.ofTwo("mul", "VMULPS")
	w.scale()
	w.divide()
	w.merge()
	w.rotate()
	if !w.Wide() { // zmm form has no VADDSUBPS
		w.rotatePairs()
	}
	w.exps()
	w.gate()
	w.normal()
	w.softCap()
	w.softMax()
	w.halve()
	w.widen("widen", "(y *float32, x *uint16, n int)", 2)
	w.widen("widenBytes", "(y *float32, x *int8, n int)", 1)
	w.round()
	w.mulRows()
	w.mulAddRows()
}
