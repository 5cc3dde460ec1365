package vec

import "unsafe"

// Product is C = A·B for small matrices by rows: c[r][j] = Σₖ a[r][k]·b[k][j], a chain of fused multiply-adds from 0 on
// in order of k, and 0 added at the end so that no sum is −0. The elements of C are independent chains, so their bits
// do not depend on the product's shape. Attention is made of such products.
type Product struct {
	C       []float32
	A       []float32
	Rows    int // of A and C
	K       int // columns of A, rows of B
	N       int // columns of B and C, a multiple of Lanes
	CStride int // elements from row to row
	AStride int
	BStride int
}

// panel is a tile of C, groups of 1, 2 or 4 rows × at most 64 columns, as the assembly takes it; the assembly counts
// the groups down.
type panel struct {
	a, c    *float32       // the first row's; c begins at the tile's first column
	b       unsafe.Pointer // first column of the tile in row 0 of B
	aStride int            // bytes, as the next two
	cStride int
	bStride int
	k       int    // at least 1
	groups  int    // at least 1
	ahead   int    // bytes from b to what is prefetched; 0: nothing is
	mask    uint64 // columns: ones in groups of Lanes (AVX-512)
}

// Panel multiplies by a B of float32. next, if not empty, is what will be read after b, in the same layout: it is
// prefetched, one of its rows with each row of b.
func (isa ISA) Panel(p *Product, b, next []float32) {
	if !p.run(isa, unsafe.Pointer(at(b)), len(b), unsafe.Pointer(at(next)), 4) {
		panelTwin(p, func(i int) float32 { return b[i] })
	}
}

// PanelHalf multiplies by a B of halves.
func (isa ISA) PanelHalf(p *Product, b, next []uint16) {
	if !p.run(isa, unsafe.Pointer(at(b)), len(b), unsafe.Pointer(at(next)), 2) {
		var wide [1]float32
		panelTwin(p, func(i int) float32 { widenTwin(wide[:], b[i:i+1]); return wide[0] })
	}
}

// PanelByte multiplies by a B of integers.
func (isa ISA) PanelByte(p *Product, b, next []int8) {
	if !p.run(isa, unsafe.Pointer(at(b)), len(b), unsafe.Pointer(at(next)), 1) {
		panelTwin(p, func(i int) float32 { return float32(b[i]) })
	}
}

// run multiplies by a B of n elements of so many bytes, or leaves it to the twin. It panics if a slice is shorter than
// the shape says: the assembly would go on behind it.
func (p *Product) run(isa ISA, b unsafe.Pointer, n int, next unsafe.Pointer, size int) bool {
	if p.Rows <= 0 || p.N <= 0 {
		return true
	}
	if p.N%Lanes != 0 || len(p.C) < (p.Rows-1)*p.CStride+p.N || len(p.A) < (p.Rows-1)*p.AStride+p.K ||
		p.K > 0 && n < (p.K-1)*p.BStride+p.N {
		panic("vec: a matrix is smaller than the product's shape")
	}
	if isa == Generic || p.K == 0 {
		return false
	}
	ahead := 0
	if next != nil {
		ahead = int(uintptr(next) - uintptr(b))
	}
	width := 64
	if isa.rows() {
		width = 2 * Lanes
	}
	for j := 0; j < p.N; j += width {
		if isa.rows() && (p.Rows > 1 || p.N-j < width) {
			width = Lanes
		}
		p.tile(isa, unsafe.Add(b, j*size), j, min(width, p.N-j), ahead, size)
	}
	return true
}

// tile computes n columns from j on.
func (p *Product) tile(isa ISA, b unsafe.Pointer, j, n, ahead, size int) {
	t := panel{
		b: b, aStride: 4 * p.AStride, cStride: 4 * p.CStride, bStride: p.BStride * size,
		k: p.K, ahead: ahead, mask: ^uint64(0) >> (64 - n),
	}
	for row, rows := 0, 4; row < p.Rows; rows /= 2 {
		if t.groups = (p.Rows - row) / rows; t.groups > 0 {
			t.a, t.c = at(p.A[row*p.AStride:]), at(p.C[row*p.CStride+j:])
			row += t.groups * rows
			if isa.rows() {
				runWhole(&t, rows, size)
			} else {
				runAVX512(&t, rows, size)
			}
			t.ahead = 0
		}
	}
}
