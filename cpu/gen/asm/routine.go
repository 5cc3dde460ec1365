package asm

import (
	"fmt"
	"go/ast"
	"go/parser"
)

// arg is an argument or a result of a routine.
type arg struct {
	name   string
	offset int  // in the frame
	float  bool // a float32, of 4 bytes; a bool has 1, all else 8
	size   int  // of an element behind a pointer to numbers
	row    bool // a pointer to n elements
	result bool
	reg    string // once it is loaded
}

// Enter starts a routine with a frame and a signature as Go has it. What says, for Go, what it is.
func (e *Emitter) Enter(name, what string, frame int, signature string) {
	e.used, e.args, e.held = 0, nil, map[string]string{}
	expr, err := parser.ParseExpr("func" + signature)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}
	f := expr.(*ast.FuncType)
	end := e.fields(f.Params, 0)
	if f.Results != nil {
		params := len(e.args)
		end = e.fields(f.Results, (end+7)&^7)
		for i := range e.args[params:] {
			e.args[params+i].result = true
		}
	}
	e.Declared = append(e.Declared, Declaration{name, what, signature})
	comment, flags := "func "+name+signature, "NOSPLIT"
	if what != "" {
		comment = name + " is a " + what + "."
	}
	if frame > 0 {
		flags = "0"
	}
	if e.ARM && frame > 0 {
		frame += linkBytes - 8
	}
	e.Line("\n// %s\nTEXT ·%s(SB), %s, $%d-%d", comment, name, flags, frame, end)
}

// Load loads an argument.
func (e *Emitter) Load(name, register string) {
	a := e.arg(name)
	a.reg = register
	e.F("MOVQ %s+%d(FP), %s", name, a.offset, register)
}

// Begin starts a routine of this instruction set without a frame, and loads its arguments, but for those that are floats,
// into registers that Arg names, from DI on; AX, BX and R10 to R13 are never among them, of which Rows takes BX, R11 and
// R12. A pointer to a number is one to a row of n elements, which Rows moves on; one to an array stays.
func (e *Emitter) Begin(name, signature string) {
	e.Enter(name+e.Suffix, "", 0, signature)
	free := []string{"DI", "SI", "DX", "CX", "R8", "R9"}
	for i := range e.args {
		if a := &e.args[i]; !a.float && !a.result {
			e.Load(a.name, free[0])
			free = free[1:]
		}
	}
}

// fields gives arguments, or results, their places from an offset on, and returns the end.
func (e *Emitter) fields(list *ast.FieldList, at int) int {
	bytes := map[string]int{"float32": 4, "uint16": 2, "int8": 1, "byte": 1}
	for _, field := range list.List {
		a, size := arg{name: "ret"}, 8
		switch t := field.Type.(type) {
		case *ast.Ident:
			if a.float = t.Name == "float32"; a.float {
				size = 4
			}
			if t.Name == "bool" {
				size = 1
			}
		case *ast.StarExpr:
			switch t := t.X.(type) {
			case *ast.Ident:
				a.size = bytes[t.Name]
				a.row = a.size > 0
			case *ast.ArrayType:
				a.size = bytes[t.Elt.(*ast.Ident).Name]
			}
		}
		for i := range max(1, len(field.Names)) {
			if len(field.Names) > 0 {
				a.name = field.Names[i].Name
			}
			a.offset = (at + size - 1) &^ (size - 1)
			at = a.offset + size
			e.args = append(e.args, a)
		}
	}
	return at
}

// End ends a routine.
func (e *Emitter) End() {
	e.F("VZEROUPPER")
	e.F("RET")
}

func (e *Emitter) arg(name string) *arg {
	for i := range e.args {
		if e.args[i].name == name {
			return &e.args[i]
		}
	}
	panic("no argument " + name)
}

// Arg is the register of an argument.
func (e *Emitter) Arg(name string) string { return e.arg(name).reg }

// Broadcast loads an argument that is a float.
func (e *Emitter) Broadcast(name string) Vec {
	v := e.Scalar()
	e.F("VBROADCASTSS %s+%d(FP), %s", name, e.arg(name).offset, v.Part(0))
	return v
}

// Return sets a result to the first lane of a register.
func (e *Emitter) Return(name string, x Vec) {
	e.F("VMOVSS %s, %s+%d(FP)", x.Part(0), name, e.arg(name).offset)
}

// At is where lanes elements behind a pointer lie, from the given one on.
func (e *Emitter) At(pointer string, element, lanes int) Vec {
	a := e.arg(pointer)
	return e.Mem(a.size*element, "("+a.reg+")", a.size, lanes)
}

// Row is the 16 elements of a row that are at hand in Rows.
func (e *Emitter) Row(pointer string) Vec { return e.At(pointer, 0, 16).Partial() }

// HalfAsMany says that a row has one element for two of n.
func (e *Emitter) HalfAsMany(pointer string) { e.arg(pointer).size /= 2 }

// Advance moves a pointer on.
func (e *Emitter) Advance(pointer string, elements int) {
	a := e.arg(pointer)
	e.F("ADDQ $%d, %s", a.size*elements, a.reg)
}

// Rows runs body for every 16 of n elements. In ymm form n must be a multiple of 16; in zmm form a mask says which
// lanes there are.
func (e *Emitter) Rows(body func()) {
	n := e.Arg("n")
	if e.Wide() {
		e.F("MOVQ $16, R11")
		e.F("MOVL $-1, R12")
	}
	e.F("rows:")
	if e.Wide() {
		e.F("MOVQ R11, BX")
		e.F("CMPQ %s, R11", n)
		e.F("CMOVQLT %s, BX", n)
		e.F("BZHIL BX, R12, BX")
		e.F("KMOVW BX, K1")
	}
	body()
	for _, a := range e.args {
		if a.row {
			e.Advance(a.name, 16)
		}
	}
	e.F("SUBQ $16, %s", n)
	e.F("JGT rows")
}

// Times runs body as often as an argument says.
func (e *Emitter) Times(count string, body func()) {
	e.F("times:")
	body()
	e.F("DECQ %s", e.Arg(count))
	e.F("JNZ times")
}
