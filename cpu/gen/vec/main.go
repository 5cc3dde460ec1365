// Command vec writes the assembly of cpu/vec: each routine once, for every instruction set.
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

// run writes the assembly of all instruction sets, and for each architecture declarations for Go: of its routines, and of
// what stands for those that it lacks. Routines of whole rows have the same name everywhere.
func run(dir string) error {
	whole, neon := asm.AVX2, asm.NEON
	whole.Suffix, neon.Suffix = "Whole", "Whole"
	var all []declaration
	for _, isa := range []asm.ISA{whole, asm.AVX512} {
		declared, err := write(dir, isa)
		if err != nil {
			return err
		}
		all = append(all, declared...)
	}
	its, err := write(dir, neon)
	if err != nil {
		return err
	}
	return errors.Join(
		asm.WriteGo(dir, "stubs_gen.go", asm.Header(generator, whole.Architecture())+declarations(all, all)),
		asm.WriteGo(dir, "stubs_arm64_gen.go", asm.Header(generator, neon.Architecture())+declarations(all, its)),
		asm.WriteGo(dir, "others_gen.go", asm.Header(generator, "(!amd64 && !arm64) || purego")+declarations(all, nil)))
}

// A declaration is a function for Go: a routine, or what chooses one.
type declaration struct{ comment, signature, body string }

// declarations declares all, of which those that are not here panic.
func declarations(all, here []declaration) string {
	var text strings.Builder
	text.WriteString("package vec\n")
	for _, d := range all {
		i := slices.IndexFunc(here, func(h declaration) bool { return h.signature == d.signature })
		switch {
		case i < 0:
			fmt.Fprintf(&text, "\n%sfunc %s { panic(nothing) }\n", d.comment, d.signature)
		case here[i].body == "":
			fmt.Fprintf(&text, "\n//go:noescape\nfunc %s\n", d.signature)
		default:
			fmt.Fprintf(&text, "\n%sfunc %s {\n\tswitch {\n%s\t}\n}\n", d.comment, d.signature, here[i].body)
		}
	}
	return text.String()
}

// write writes the assembly of an instruction set, and returns what it declares.
func write(dir string, isa asm.ISA) (declared []declaration, err error) {
	w := writer{asm.New(isa, generator)}
	w.Constants(slices.Concat(constants, tails, bytesConstants), constantBytes[isa.Lanes])
	w.rows()
	w.recur()
	choice, narrow := w.panels(), w.narrowed()
	if !w.ARM {
		w.Data("oddSigns", signs(1)...)
		w.Data("pairSigns", signs(2)...)
		w.Data("highSigns", signs(4)...)
	}
	keys, values := w.coded()
	for _, d := range w.Declared {
		declared = append(declared, declaration{signature: d.Name + d.Signature})
	}
	declared = append(declared, declaration{
		fmt.Sprintf("// run%s multiplies groups of so many rows by elements of so many bytes.\n", isa.Suffix),
		fmt.Sprintf("run%s(p *panel, rows, size int)", isa.Suffix), choice}, declaration{
		fmt.Sprintf("// runNarrow%s multiplies a row by 16 columns of elements of so many bytes.\n", isa.Suffix),
		fmt.Sprintf("runNarrow%s(p *panel, size int)", isa.Suffix), narrow})
	for _, of := range [][3]string{{"Keys", "key", keys}, {"Values", "value", values}} {
		declared = append(declared, declaration{
			fmt.Sprintf("// run%s%s multiplies groups of so many rows by codes.\n", of[0], isa.Suffix),
			fmt.Sprintf("run%s%s(p *%sProduct, bits, rows int, book bool)", of[0], isa.Suffix, of[1]), of[2]})
	}
	return declared, w.Write(dir, isa.Name+"_gen.s")
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
