package vec

import "unsafe"

// Product is C = A·B for small matrices by rows: c[r][j] = Σₖ a[r][k]·b[k][j], a chain of fused multiply-adds from 0 on
// in order of k, and 0 added at the end so that no sum is −0. The elements of C are independent chains, so that the
// shape of the product never shows in its bits; attention is built of nothing else.
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

// panel is a tile of at most 4 rows × 64 columns, as the assembly takes it.
type panel struct {
	a       [4]*float32    // rows of A; all that a routine's row count names
	c       [4]*float32    // rows of C
	b       unsafe.Pointer // first column of the tile in row 0 of B
	bStride int            // bytes
	k       int            // at least 1
	mask    uint64         // columns: ones in groups of Lanes (AVX-512)
}

// Panel multiplies by a B of float32.
func (isa ISA) Panel(p *Product, b []float32) {
	if p.check(len(b)); isa == Generic || p.K == 0 {
		panelTwin(p, func(i int) float32 { return b[i] })
		return
	}
	p.tiles(isa, unsafe.Pointer(at(b)), 4)
}

// PanelHalf multiplies by a B of halves, which are widened exactly.
func (isa ISA) PanelHalf(p *Product, b []uint16) {
	if p.check(len(b)); isa == Generic || p.K == 0 {
		var wide [1]float32
		panelTwin(p, func(i int) float32 { widenTwin(wide[:], b[i:i+1]); return wide[0] })
		return
	}
	p.tiles(isa, unsafe.Pointer(at(b)), 2)
}

// check panics if a slice is shorter than the shape says: the assembly would go on behind it.
func (p *Product) check(b int) {
	if p.Rows <= 0 || p.N <= 0 {
		return
	}
	if p.N%Lanes != 0 || len(p.C) < (p.Rows-1)*p.CStride+p.N || len(p.A) < (p.Rows-1)*p.AStride+p.K ||
		p.K > 0 && b < (p.K-1)*p.BStride+p.N {
		panic("vec: a matrix is smaller than the product's shape")
	}
}

// tiles cuts the product for the assembly; size is that of an element of B in bytes.
func (p *Product) tiles(isa ISA, b unsafe.Pointer, size int) {
	width := 64
	if isa == AVX2 {
		width = Lanes
	}
	t := panel{bStride: p.BStride * size, k: p.K}
	for j := 0; j < p.N; j += width {
		n := min(width, p.N-j)
		t.b = unsafe.Add(b, j*size)
		t.mask = ^uint64(0) >> (64 - n)
		for r := 0; r < p.Rows; {
			rows := min(4, p.Rows-r)
			if rows == 3 {
				rows = 2
			}
			for i := range rows {
				t.a[i] = &p.A[(r+i)*p.AStride]
				t.c[i] = &p.C[(r+i)*p.CStride+j]
			}
			if isa == AVX2 {
				runAVX2(&t, rows, size)
			} else {
				runAVX512(&t, rows, size)
			}
			r += rows
		}
	}
}
