// Command kernels writes the assembly of cpu/kernels: each product once, for every instruction set.
//
// The loops of the formats (formats.go lists them; a body_*.go for each family, floats.go) are written in terms of a
// vector whose lanes are rows, with the words of blocks.go and dots.go; emit.go knows how an instruction set spells it.
// The contracts of the routines are those of the types kernel, rowKernel, panelKernel, quantizer and transposer in package kernels.
package main

import (
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

// run writes an assembly file for each instruction set, and one of Go: declarations and sets.
func run(dir string) error {
	var stubs strings.Builder
	stubs.WriteString(asm.Header(generator, "amd64 && !purego") +
		"package kernels\n\nimport \"github.com/sluice-ai/sluice/internal/quant\"\n")
	for _, isa := range []asm.ISA{asm.AVX2, asm.AVX512, asm.VNNI, asm.AMX} {
		e := &emitter{asm.New(isa, generator)}
		e.constants()
		if e.AMX {
			e.tileConfigs()
		}
		e.set(&stubs)
		if err := e.Write(dir, isa.Name+"_gen.s"); err != nil {
			return err
		}
	}
	return asm.WriteGo(dir, "stubs_gen.go", stubs.String())
}

// set writes the routines of an instruction set, declares those that are its own and collects them in a Set.
func (e *emitter) set(stubs *strings.Builder) {
	var few, many, floats strings.Builder
	for _, f := range formats {
		if !e.AMX {
			fmt.Fprintf(&few, "\ts.one[quant.%s], s.four[quant.%[1]s] = %s, %s\n", f.name, f.emitOne(e), f.emitFour(e))
		}
		if name := f.emitMany(e); name != "" {
			table := &many
			if f.body == nil {
				table = &floats
			}
			fmt.Fprintf(table, "\t\tquant.%s: %s,\n", f.name, name)
		}
	}
	if e.ISA == asm.AVX2 { // whose quantisers serve all sets: they are a small part of any product; packing as well
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
	}
	for _, d := range e.Declared {
		fmt.Fprintf(stubs, "\n// %s is a %s.\n//\n//go:noescape\nfunc %[1]s%[3]s\n", d.Name, d.What, d.Signature)
	}
	e.constructor(stubs, few.String(), many.String(), floats.String())
}

// constructor writes the function that collects the routines. Those for floats are the ones of the set below if there
// are none.
func (e *emitter) constructor(stubs *strings.Builder, few, many, floats string) {
	base, shared := "generic", "\ts.quantize[By32], s.quantize[By256] = quantize32AVX2, quantize256AVX2\n"+
		"\ts.transpose = transposers{1: transpose1AVX2, 2: transpose2AVX2, 4: transpose4AVX2, fourths: transposeFourthsAVX2}\n"+
		"\ts.stream = transposers{2: stream2AVX2, 4: stream4AVX2, fourths: streamFourthsAVX2}\n"
	if e.AMX {
		base, shared = "newVNNI", ""
	}
	fmt.Fprintf(stubs, "\n// new%s is the set of %s, which the machine must have.\nfunc new%[1]s() *Set {\n"+
		"\ts := %[3]s()\n\ts.Name = %[2]q\n%[4]s%[5]s", e.Suffix, e.Name, base, shared, few)
	if e.VNNI && !e.AMX {
		fmt.Fprintf(stubs, "\ts.panels = newAVX512().panels[:1]\n")
	}
	panels := func(least, group, most int, table string) {
		if table != "" {
			fmt.Fprintf(stubs, "\ts.addPanels(%d, %d, %d, map[quant.Type]panelKernel{\n%s\t})\n",
				least, group, most, table)
		}
	}
	group, most := e.group()
	if e.AMX {
		panels(tileRows, group, most, many)
		fmt.Fprintf(stubs, "\ts.panels[0].tiles = true\n")
	} else {
		panels(group, group, most, many)
	}
	group, least, most := e.floatGroup()
	panels(least, group, most, floats)
	fmt.Fprintf(stubs, "\treturn s\n}\n")
}
