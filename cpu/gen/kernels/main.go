// Command kernels writes the assembly of cpu/kernels: each product once, for every instruction set.
//
// The loops of the formats (formats.go lists them; a body_*.go for each family, floats.go) are written in terms of a
// vector whose lanes are rows, with the words of blocks.go and dots.go; emit.go knows how an instruction set spells it.
// The contracts of the routines are those of the types kernel, rowKernel, panelKernel, quantizer and transposer in package kernels.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"strings"

	"github.com/sluice-ai/sluice/cpu/gen/asm"
)

const (
	generator = "cpu/gen/kernels"
	kernel    = "(out *float32, stride, last, lanes int, w, x *byte, xStride, xLast, blocks int)"
	rowKernel = "(out *float32, stride, strips, lanes int, w, x *byte, wStride, blocks int)"
	panelled  = "(out *float32, stride, rows, lanes int, w, x *byte, xStride, blocks int)"
	quantizer = "(dst *byte, src *float32, n int) bool"
	transpose = "(dst, src *byte, stride, columns, units, block, blocks int)"
)

func main() {
	dir := flag.String("o", ".", "folder to write to")
	flag.Parse()
	if err := run(*dir); err != nil {
		log.Fatal(err)
	}
}

// run writes what each architecture has.
func run(dir string) error {
	return errors.Join(
		write(dir, "stubs_gen.go", asm.AVX2, asm.AVX512, asm.VNNI, asm.AMX),
		write(dir, "stubs_arm64_gen.go", asm.NEON, asm.SDOT))
}

// write writes an assembly file for each instruction set of an architecture, and one of Go: declarations and sets. Every
// set has what the one before has, but for routines of its own.
func write(dir, file string, isas ...asm.ISA) error {
	var stubs strings.Builder
	stubs.WriteString(asm.Header(generator, isas[0].Architecture()) +
		"package kernels\n\nimport \"github.com/sluice-ai/sluice/internal/quant\"\n")
	below := "generic"
	for _, isa := range isas {
		e := &emitter{asm.New(isa, generator)}
		if e.ownBlocks() {
			e.constants()
		}
		set := "new" + isa.Suffix
		text := fmt.Sprintf("\n// %s is the set of %s, which the machine must have.\nfunc %[1]s() *Set {\n"+
			"\ts := %[3]s()\n\ts.Name = %[2]q\n%[4]s\treturn s\n}\n", set, isa.Name, below, e.routines())
		for _, d := range e.Declared {
			fmt.Fprintf(&stubs, "\n// %s is a %s.\n//\n//go:noescape\nfunc %[1]s%[3]s\n", d.Name, d.What, d.Signature)
		}
		stubs.WriteString(text)
		if err := e.Write(dir, isa.Name+"_gen.s"); err != nil {
			return err
		}
		below = set
	}
	return asm.WriteGo(dir, file, stubs.String())
}

// ownFloats and ownBlocks say which formats a set multiplies by routines of its own. Few processors have AVX-512 without
// VNNI: theirs for blocks would be a third of all assembly. VNNI, AMX and SDOT bring nothing to floats.
func (e *emitter) ownFloats() bool { return !e.VNNI && !e.Dots }
func (e *emitter) ownBlocks() bool { return e.VNNI || !e.Wide() }

// routines writes those of an instruction set, and returns the code that puts them into a Set.
func (e *emitter) routines() string {
	var set, floats, blocks strings.Builder
	for _, f := range formats {
		switch {
		case f.floats() && e.ownFloats():
			e.fewRows(&set, f)
			fmt.Fprintf(&floats, "\t\tquant.%s: %s,\n", f.name, f.emitMany(e))
		case f.floats() || !e.ownBlocks() || e.AMX && !f.tiled():
		default:
			e.fewRows(&set, f)
			fmt.Fprintf(&blocks, "\t\tquant.%s: %s,\n", f.name, f.emitMany(e))
		}
	}
	if e.ISA == asm.AVX2 {
		set.WriteString(e.preparing())
	}
	panels := func(least, group, most int, kernels string) {
		more := ""
		if e.AMX {
			more = ", tiles: true"
		}
		if kernels != "" {
			fmt.Fprintf(&set, "\ts.setPanels(panels{least: %d, group: %d, most: %d%s}, map[quant.Type]panelKernel{\n%s\t})\n",
				least, group, most, more, kernels)
		}
	}
	least, group, most := e.group()
	panels(least, group, most, blocks.String())
	least, group, most = e.floatGroup()
	panels(least, group, most, floats.String())
	return set.String()
}

// fewRows writes the routines for one row and four. AMX has none: there is nothing in it for fewer rows than a tile has.
func (e *emitter) fewRows(set *strings.Builder, f source) {
	if !e.AMX {
		fmt.Fprintf(set, "\ts.one[quant.%s], s.four[quant.%[1]s] = %s, %s\n", f.name, f.emitOne(e), f.emitFour(e))
	}
}

// preparing writes what quantises and packs. AVX2's serve all sets: that is a small part of any product.
func (e *emitter) preparing() string {
	e.dealConstant()
	e.quantizer(32)
	e.quantizer(256)
	e.quarterConstants()
	for _, unit := range []int{1, 2, 4} {
		e.transposer(unit, false)
	}
	e.transposer(2, true)
	e.transposer(4, true)
	e.fourths(false)
	e.fourths(true)
	return "\ts.quantize[By32], s.quantize[By256] = quantize32AVX2, quantize256AVX2\n" +
		"\ts.transpose = transposers{1: transpose1AVX2, 2: transpose2AVX2, 4: transpose4AVX2, fourths: transposeFourthsAVX2}\n" +
		"\ts.stream = transposers{2: stream2AVX2, 4: stream4AVX2, fourths: streamFourthsAVX2}\n"
}
