package cpu

import (
	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/kvcode"
)

// codedKeys is K in codes of few bits, rotated. Queries are rotated and rounded to bytes once for all blocks; their
// products with codes are integers.
type codedKeys struct {
	unscaled
	vec.CodedKeys
	code     kvcode.Code
	rotation *kvcode.Rotation
}

func newCodedKeys(f backend.Coded, dim int) *codedKeys {
	return &codedKeys{CodedKeys: vec.CodedKeys{Codes: vec.CodesOf(f.Code, dim), Features: dim}, code: f.Code,
		rotation: kvcode.RotationOf(dim)}
}

func (k *codedKeys) bytes() int { return k.Bytes() }

func (k *codedKeys) prepared() int { return k.QueryBytes() }

func (k *codedKeys) prepare(isa vec.ISA, q *queries, n int) {
	row := q.some[:k.Features]
	for i := range n {
		copy(row, q.scaled[i*k.Features:])
		rotate(isa, k.rotation, row)
		k.Query(isa, q.coded[i*k.QueryBytes():], row)
	}
}

func (k *codedKeys) store(isa vec.ISA, w *workspace, in held, _ int, rows []float32) {
	codes, scales := encode(isa, w, k.code, k.rotation, rows)
	k.Pack(in.block, codes, scales)
}

func (k *codedKeys) load(rows []float32, in held) {
	decode(k.code, k.rotation, rows, func(codes []byte, scales []uint16) { k.Unpack(codes, scales, in.block) })
}

func (k *codedKeys) multiply(isa vec.ISA, q *queries, p *vec.Product, in held, next []byte) {
	k.Multiply(isa, p.C, q.coded[q.first*k.QueryBytes():], p.Rows, in.block, next)
}

// codedValues is V in codes, rotated. Sums over V are rotated back when all blocks are added; weights are rounded to
// 16-bit words for each block.
type codedValues struct {
	unscaled
	vec.CodedValues
	code     kvcode.Code
	rotation *kvcode.Rotation
}

func newCodedValues(f backend.Coded, dim int) *codedValues {
	return &codedValues{CodedValues: vec.CodedValues{Codes: vec.CodesOf(f.Code, dim), Features: dim}, code: f.Code,
		rotation: kvcode.RotationOf(dim)}
}

func (v *codedValues) bytes() int { return v.Bytes() }

func (v *codedValues) prepared() int { return v.WeightBytes() }

func (v *codedValues) rotated() *kvcode.Rotation { return v.rotation }

func (v *codedValues) store(isa vec.ISA, w *workspace, in held, _ int, rows []float32) {
	codes, scales := encode(isa, w, v.code, v.rotation, rows)
	v.Pack(in.block, codes, scales)
}

func (v *codedValues) load(rows []float32, in held) {
	decode(v.code, v.rotation, rows, func(codes []byte, scales []uint16) { v.Unpack(codes, scales, in.block) })
}

func (v *codedValues) multiply(isa vec.ISA, q *queries, p *vec.Product, weights []float32, _ int, in held,
	next []byte) {
	v.Weigh(isa, q.weighed, weights, in.block)
	v.CodedValues.Multiply(isa, p.C, p.CStride, q.weighed, p.Rows, in.block, next)
}

// encode rotates the 64 rows of a block, in place, and finds their codes and scales.
func encode(isa vec.ISA, w *workspace, code kvcode.Code, r *kvcode.Rotation, rows []float32) ([]byte, []uint16) {
	dim := len(rows) / backend.BlockSize
	each, memory := code.Scales(dim), bytesOf(w.queries.wide)
	codes, scales := memory[:len(rows)], as[uint16](memory[len(rows):])[:each*backend.BlockSize]
	for i := range backend.BlockSize {
		row := rows[i*dim:][:dim]
		rotate(isa, r, row)
		code.Encode(codes[i*dim:][:dim], scales[i*each:][:each], row)
	}
	return codes, scales
}

// decode decodes the rows of a block.
func decode(code kvcode.Code, r *kvcode.Rotation, rows []float32, unpack func([]byte, []uint16)) {
	dim := len(rows) / backend.BlockSize
	each := code.Scales(dim)
	codes, scales := make([]byte, len(rows)), make([]uint16, each*backend.BlockSize)
	unpack(codes, scales)
	for i := range backend.BlockSize {
		row := rows[i*dim:][:dim]
		code.Decode(row, codes[i*dim:][:dim], scales[i*each:][:each])
		r.Unrotate(row)
	}
}

// rotate is what r.Rotate does, to the bit.
func rotate(isa vec.ISA, r *kvcode.Rotation, row []float32) {
	isa.Mul(row, row, r.Signs)
	transform(isa, r, row, false)
}

// unrotate is what r.Unrotate does.
func unrotate(isa vec.ISA, r *kvcode.Rotation, row []float32) {
	transform(isa, r, row, true)
	isa.Mul(row, row, r.Signs)
}

func transform(isa vec.ISA, r *kvcode.Rotation, row []float32, back bool) {
	for from := 0; from < len(row); from += r.Power {
		isa.Butterflies(row[from : from+r.Power])
	}
	r.Across(row, back)
	isa.Scale(row, row, r.Scale)
}
