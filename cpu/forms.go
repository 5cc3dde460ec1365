package cpu

import (
	"unsafe"

	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/kvcode"
	"github.com/sluice-ai/sluice/internal/quant"
)

// keys is how K of a head lies in a block. It is chosen when a model is compiled, and called once for a head and block.
// Scales of all heads lie together, apart from what they scale, so that the processor can prefetch them.
type keys interface {
	bytes() int
	scales() int // of a position
	// store writes a row at a position of the block, or all 64 rows at 0; load reads all 64.
	store(isa vec.ISA, w *workspace, in held, at int, rows []float32)
	load(rows []float32, in held)
	// prepare converts n queries to what multiply takes, prepared() bytes each; 0: multiply takes them as they are.
	prepared() int
	prepare(isa vec.ISA, q *queries, n int)
	// multiply runs a product with K of the first positions. next is read after it.
	multiply(isa vec.ISA, q *queries, p *vec.Product, in held, next []byte)
}

// values is how V of a head lies in a block. multiply runs a product with the positions from lo on; weights are those
// of all its rows, by position of the block, and may be changed.
type values interface {
	bytes() int
	scales() int
	store(isa vec.ISA, w *workspace, in held, at int, rows []float32)
	load(rows []float32, in held)
	prepared() int             // bytes that multiply makes of a row's weights
	rotated() *kvcode.Rotation // the rotation of V, and so of its sums; nil: none
	multiply(isa vec.ISA, q *queries, p *vec.Product, weights []float32, lo int, in held, next []byte)
}

// held is K or V of a head in a block, with its scales, [scale][64 positions].
type held struct {
	block  []byte
	scaled []float32
}

// scale is scale i of all positions.
func (h *held) scale(i int) *[backend.BlockSize]float32 {
	return (*[backend.BlockSize]float32)(h.scaled[i*backend.BlockSize:])
}

// unscaled implements scales for forms without any.
type unscaled struct{}

func (unscaled) scales() int { return 0 }

// floating implements prepare for forms that take queries and weights as float32.
type floating struct{}

func (floating) prepared() int { return 0 }

func (floating) prepare(vec.ISA, *queries, int) {}

func (floating) rotated() *kvcode.Rotation { return nil }

// keysOf chooses how the processor keeps a form of K. A form without kernels is kept as it defines itself.
func keysOf(f backend.Form, dim int) keys {
	switch f := f.(type) {
	case backend.Float32:
		return &plainKeys{elements: &floats32{}, dim: dim}
	case backend.Half:
		return &plainKeys{elements: &floats16{}, dim: dim}
	case backend.Scaled:
		if f.Each > 0 {
			return &scaledKeys{each: f.Each, dim: dim}
		}
	case backend.Coded:
		if dim <= vec.CodesMost {
			return newCodedKeys(f, dim)
		}
	}
	return &loadedKeys{Form: f, dim: dim}
}

// valuesOf chooses the same for a form of V, in rows of stride elements.
func valuesOf(f backend.Form, dim, stride int) values {
	switch f := f.(type) {
	case backend.Float32:
		return &plainValues{elements: &floats32{}, dim: dim, stride: stride}
	case backend.Half:
		return &plainValues{elements: &floats16{}, dim: dim, stride: stride}
	case backend.Scaled:
		if f.Each == 0 {
			return &scaledValues{dim: dim, stride: stride}
		}
	case backend.Coded:
		if dim <= vec.CodesMost {
			return newCodedValues(f, dim)
		}
	}
	return &loadedValues{Form: f, dim: dim, stride: stride}
}

// as views memory as numbers of another type.
func as[T any](b []byte) []T {
	var one T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(one)))
}

// scatter writes key to a column of K.
func scatter[T float32 | uint16 | int8](block, key []T, at int) {
	for i, x := range key {
		block[i*backend.BlockSize+at] = x
	}
}

// elements are numbers that a product takes without preparation.
type elements interface {
	size() int
	column(isa vec.ISA, w *workspace, block []byte, at int, row []float32)
	row(isa vec.ISA, to []byte, row []float32)
	wide(to []float32, b []byte)
	multiply(isa vec.ISA, q *queries, p *vec.Product, b, next []byte)
}

type plainKeys struct {
	unscaled
	floating
	elements
	dim int
}

func (k *plainKeys) bytes() int { return backend.BlockSize * k.dim * k.size() }

func (k *plainKeys) store(isa vec.ISA, w *workspace, in held, at int, rows []float32) {
	for ; len(rows) > 0; rows, at = rows[k.dim:], at+1 {
		k.column(isa, w, in.block, at, rows[:k.dim])
	}
}

func (k *plainKeys) multiply(isa vec.ISA, q *queries, p *vec.Product, in held, next []byte) {
	k.elements.multiply(isa, q, p, in.block, next)
}

func (k *plainKeys) load(rows []float32, in held) {
	column := make([]float32, backend.BlockSize)
	for i := range k.dim {
		k.wide(column, in.block[i*backend.BlockSize*k.size():])
		for at, x := range column {
			rows[at*k.dim+i] = x
		}
	}
}

type plainValues struct {
	unscaled
	floating
	elements
	dim, stride int
}

func (v *plainValues) bytes() int { return backend.BlockSize * v.stride * v.size() }

func (v *plainValues) store(isa vec.ISA, _ *workspace, in held, at int, rows []float32) {
	for ; len(rows) > 0; rows, at = rows[v.dim:], at+1 {
		v.row(isa, in.block[at*v.stride*v.size():], rows[:v.dim])
	}
}

func (v *plainValues) load(rows []float32, in held) {
	for at := range backend.BlockSize {
		v.wide(rows[at*v.dim:][:v.dim], in.block[at*v.stride*v.size():])
	}
}

func (v *plainValues) multiply(isa vec.ISA, q *queries, p *vec.Product, _ []float32, lo int, in held, next []byte) {
	v.elements.multiply(isa, q, p, in.block[lo*v.stride*v.size():], next)
}

type floats32 struct{}

func (*floats32) size() int { return 4 }

func (*floats32) column(_ vec.ISA, _ *workspace, block []byte, at int, row []float32) {
	scatter(as[float32](block), row, at)
}

func (*floats32) row(_ vec.ISA, to []byte, row []float32) { copy(as[float32](to), row) }

func (*floats32) wide(to []float32, b []byte) { copy(to, as[float32](b)) }

func (*floats32) multiply(isa vec.ISA, _ *queries, p *vec.Product, b, next []byte) {
	isa.Panel(p, as[float32](b)[:span(p)], as[float32](next))
}

type floats16 struct{}

func (*floats16) size() int { return 2 }

func (*floats16) column(isa vec.ISA, w *workspace, block []byte, at int, row []float32) {
	kept := w.halves[:len(row)]
	isa.Halve(kept, row)
	scatter(as[uint16](block), kept, at)
}

func (*floats16) row(isa vec.ISA, to []byte, row []float32) {
	isa.Halve(as[uint16](to)[:len(row)], row)
}

func (*floats16) wide(to []float32, b []byte) {
	for i, x := range as[uint16](b)[:len(to)] {
		to[i] = quant.F16ToF32(x)
	}
}

func (*floats16) multiply(isa vec.ISA, q *queries, p *vec.Product, b, next []byte) {
	kept := as[uint16](b)[:span(p)]
	if p.Rows < worthWidening {
		isa.PanelHalf(p, kept, as[uint16](next))
		return
	}
	isa.Widen(q.wide[:len(kept)], kept)
	isa.Panel(p, q.wide[:len(kept)], nil)
}

// worthWidening is the number of rows from which it is faster to widen elements once than in each pass of four rows.
const worthWidening = 8

// span is the number of elements that a product's right operand extends over.
func span(p *vec.Product) int { return (p.K-1)*p.BStride + p.N }

func multiplyBytes(isa vec.ISA, q *queries, p *vec.Product, b, next []byte) {
	kept := as[int8](b)[:span(p)]
	if p.Rows < worthWidening {
		isa.PanelByte(p, kept, as[int8](next))
		return
	}
	isa.WidenBytes(q.wide[:len(kept)], kept)
	isa.Panel(p, q.wide[:len(kept)], nil)
}

// scaledKeys is K in bytes, with a scale of every Each features by position: scores are summed for features with one
// scale, then scaled and added.
type scaledKeys struct {
	floating
	each, dim int
}

func (k *scaledKeys) scales() int { return (k.dim + k.each - 1) / k.each }

func (k *scaledKeys) bytes() int { return backend.BlockSize * k.dim }

func (k *scaledKeys) store(isa vec.ISA, w *workspace, in held, at int, rows []float32) {
	kept := w.bytes[:k.dim]
	for ; len(rows) > 0; rows, at = rows[k.dim:], at+1 {
		for i := range k.scales() {
			from := i * k.each
			to := min(from+k.each, k.dim)
			in.scale(i)[at] = isa.Bytes(kept[from:to], rows[from:to], backend.KVTiny)
		}
		scatter(as[int8](in.block), kept, at)
	}
}

func (k *scaledKeys) load(rows []float32, in held) {
	for i := range k.dim {
		kept, scale := as[int8](in.block[i*backend.BlockSize:]), in.scale(i/k.each)
		for at, unit := range scale {
			rows[at*k.dim+i] = float32(kept[at]) * unit
		}
	}
}

func (k *scaledKeys) multiply(isa vec.ISA, q *queries, p *vec.Product, in held, next []byte) {
	part, scores := *p, p.C
	for i := range k.scales() {
		from := i * k.each
		part.A, part.K = p.A[from:], min(k.each, k.dim-from)
		if i > 0 {
			part.C = q.some
		}
		multiplyBytes(isa, q, &part, in.block[from*backend.BlockSize:], next[min(from*backend.BlockSize, len(next)-1):])
		if i == 0 {
			isa.MulRows(scores, in.scale(i))
		} else {
			isa.MulAddRows(scores, q.some, in.scale(i))
		}
	}
}

// scaledValues is V in bytes, with a scale for each position: weights are multiplied by the scales before the product.
type scaledValues struct {
	floating
	dim, stride int
}

func (*scaledValues) scales() int { return 1 }

func (v *scaledValues) bytes() int { return backend.BlockSize * v.stride }

func (v *scaledValues) store(isa vec.ISA, _ *workspace, in held, at int, rows []float32) {
	for ; len(rows) > 0; rows, at = rows[v.dim:], at+1 {
		in.scale(0)[at] = isa.Bytes(as[int8](in.block[at*v.stride:])[:v.dim], rows[:v.dim], backend.KVTiny)
	}
}

func (v *scaledValues) load(rows []float32, in held) {
	for at, unit := range in.scale(0) {
		for i, x := range as[int8](in.block[at*v.stride:])[:v.dim] {
			rows[at*v.dim+i] = float32(x) * unit
		}
	}
}

func (v *scaledValues) multiply(isa vec.ISA, q *queries, p *vec.Product, weights []float32, lo int, in held,
	next []byte) {
	isa.MulRows(weights, in.scale(0))
	multiplyBytes(isa, q, p, in.block[lo*v.stride:], next)
}

// loadedKeys holds keys in a form that has no kernels. They are decoded once for all queries that share a head.
type loadedKeys struct {
	unscaled
	floating
	backend.Form
	dim int
}

func (k *loadedKeys) bytes() int { return align(k.Bytes(k.dim)) }

func (k *loadedKeys) store(_ vec.ISA, _ *workspace, in held, at int, rows []float32) {
	k.Put(in.block, k.dim, at, rows)
}

func (k *loadedKeys) load(rows []float32, in held) { k.Get(rows, in.block, k.dim, 0) }

func (k *loadedKeys) multiply(isa vec.ISA, q *queries, p *vec.Product, in held, _ []byte) {
	rows, wide := q.rows[:p.N*k.dim], q.wide[:span(p)]
	k.Get(rows, in.block, k.dim, 0)
	for at := range p.N {
		scatter(wide, rows[at*k.dim:(at+1)*k.dim], at)
	}
	isa.Panel(p, wide, nil)
}

// loadedValues does for V what loadedKeys does for K.
type loadedValues struct {
	unscaled
	floating
	backend.Form
	dim, stride int
}

func (v *loadedValues) bytes() int { return align(v.Bytes(v.dim)) }

func (v *loadedValues) store(_ vec.ISA, _ *workspace, in held, at int, rows []float32) {
	v.Put(in.block, v.dim, at, rows)
}

func (v *loadedValues) load(rows []float32, in held) { v.Get(rows, in.block, v.dim, 0) }

func (v *loadedValues) multiply(isa vec.ISA, q *queries, p *vec.Product, _ []float32, lo int, in held, _ []byte) {
	rows, wide := q.rows[:p.K*v.dim], q.wide[:p.K*v.stride]
	v.Get(rows, in.block, v.dim, lo)
	clear(wide)
	for at := range p.K {
		copy(wide[at*v.stride:], rows[at*v.dim:(at+1)*v.dim])
	}
	isa.Panel(p, wide, nil)
}
