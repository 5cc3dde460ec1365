package main

import (
	"fmt"
	"strings"
)

// Instructions of AMX, which Go's assembler does not know, as bytes: a VEX prefix of three, opcode, ModRM and, for
// memory, SIB and a displacement of 32 bits. Intel SDM volume 2; their VEX.mmmmm is 0F38, W and L are 0.

// tileOp is an instruction with a memory operand: VEX.pp and the opcode.
type tileOp struct {
	name       string
	pp, opcode byte
}

var (
	ldtilecfg = tileOp{"LDTILECFG", 0, 0x49}
	tileload  = tileOp{"TILELOADD", 3, 0x4b}
	tilestore = tileOp{"TILESTORED", 2, 0x4b}
)

// registerNumbers are those of general registers that tiles are addressed by.
var registerNumbers = map[string]byte{"AX": 0, "DX": 2, "R8": 8, "R10": 10, "R11": 11, "R13": 13, "R15": 15}

func (e *emitter) bytes(code ...byte) {
	parts := make([]string, len(code))
	for i, b := range code {
		parts[i] = fmt.Sprintf("BYTE $0x%02x", b)
	}
	e.F("%s", strings.Join(parts, "; "))
}

// tileMem writes an instruction on tile and memory: lines begin index bytes apart, the first at base + disp.
func (e *emitter) tileMem(op tileOp, tile int, base, index string, disp int) {
	b, i := registerNumbers[base], byte(4) // 4: no index
	if index != "" {
		i = registerNumbers[index]
	}
	vex := byte(0xe2) &^ (i >> 3 << 6) &^ (b >> 3 << 5)
	e.F("// %s tile %d, %d(%s)(%s*1)", op.name, tile, disp, base, index)
	e.bytes(0xc4, vex, 0x78|op.pp, op.opcode, 0x84|byte(tile)<<3, i&7<<3|b&7,
		byte(disp), byte(disp>>8), byte(disp>>16), byte(disp>>24))
}

func (e *emitter) tileZero(tile int) {
	e.F("// TILEZERO tile %d", tile)
	e.bytes(0xc4, 0xe2, 0x7b, 0x49, 0xc0|byte(tile)<<3)
}

// tileDot adds to each dword of tile sum, row m and column n, the four products of signed bytes of dword k of x's row
// m and dword n of w's row k, for all k.
func (e *emitter) tileDot(sum, x, w int) {
	e.F("// TDPBSSD tile %d += tile %d * tile %d", sum, x, w)
	e.bytes(0xc4, 0xe2, 0x7b&^(byte(w)<<3), 0x5e, 0xc0|byte(sum)<<3|byte(x))
}
