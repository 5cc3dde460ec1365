// Command vec writes the assembly of cpu/vec: each routine once, for both instruction sets.
//
// What a routine computes is that of its twin in package vec, operation by operation.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"log"
	"os"
	"path/filepath"
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
	stubs := bytes.NewBufferString(asm.Header(generator, "amd64 && !purego") + "package vec\n")
	others := bytes.NewBufferString(asm.Header(generator, "!amd64 || purego") + "package vec\n")
	for _, isa := range []asm.ISA{{Suffix: "AVX2", Lanes: 8}, {Suffix: "AVX512", Lanes: 16}} {
		w := writer{asm.New(isa, generator)}
		w.Constants(constants)
		w.rows()
		choice := w.panels()
		for _, d := range w.Declared {
			fmt.Fprintf(stubs, "\n//go:noescape\nfunc %s%s\n", d.Name, d.Signature)
			fmt.Fprintf(others, "\nfunc %s%s { panic(nothing) }\n", d.Name, d.Signature)
		}
		panel := fmt.Sprintf("\n// run%s multiplies groups of so many rows by elements of so many bytes.\n"+
			"func run%[1]s(p *panel, rows, size int)", isa.Suffix)
		fmt.Fprintf(stubs, "%s {\n\tswitch {\n%s\t}\n}\n", panel, choice)
		fmt.Fprintf(others, "%s { panic(nothing) }\n", panel)
		name := filepath.Join(dir, strings.ToLower(isa.Suffix)+"_gen.s")
		if err := os.WriteFile(name, w.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(writeGo(dir, "stubs_gen.go", stubs), writeGo(dir, "others_gen.go", others))
}

func writeGo(dir, name string, text *bytes.Buffer) error {
	formatted, err := format.Source(text.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), formatted, 0o644)
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
	w.softCap()
	w.softMax()
	w.halve()
	w.widen("widen", "(y *float32, x *uint16, n int)", 2)
	w.widen("widenBytes", "(y *float32, x *int8, n int)", 1)
	w.round()
	w.mulRows()
	w.mulAddRows()
}
