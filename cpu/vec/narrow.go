package vec

import "unsafe"

// chains is how many chains of sums a narrow product has for each column: as many as keep the processor busy, where one
// waits for itself.
const chains = 4

// Narrow is y = x·B for a B of as many columns as there are lanes, whose rows begin stride elements apart. The sums of
// a column are four chains of fused multiply-adds, of every fourth row, added as (0+1)+(2+3); then one of the last
// rows, if their number is no multiple of four.
func (isa ISA) Narrow(y *[Lanes]float32, x, b []float32, stride int) {
	isa.narrow(y, x, unsafe.Pointer(at(b)), len(b), stride, 4, func(i int) float32 { return b[i] })
	if rest := len(x) % chains; rest > 0 {
		var last [Lanes]float32
		isa.Panel(lastRows(&last, x, rest, stride), b[(len(x)-rest)*stride:], nil)
		isa.Add(y[:], y[:], last[:])
	}
}

// NarrowHalf is Narrow for a B of halves.
func (isa ISA) NarrowHalf(y *[Lanes]float32, x []float32, b []uint16, stride int) {
	var wide [1]float32
	isa.narrow(y, x, unsafe.Pointer(at(b)), len(b), stride, 2,
		func(i int) float32 { widenTwin(wide[:], b[i:i+1]); return wide[0] })
	if rest := len(x) % chains; rest > 0 {
		var last [Lanes]float32
		isa.PanelHalf(lastRows(&last, x, rest, stride), b[(len(x)-rest)*stride:], nil)
		isa.Add(y[:], y[:], last[:])
	}
}

// lastRows is the product of the rows that are no four.
func lastRows(to *[Lanes]float32, x []float32, rest, stride int) *Product {
	return &Product{C: to[:], A: x[len(x)-rest:], Rows: 1, K: rest, N: Lanes, BStride: stride}
}

// narrow multiplies by the rows that are fours, of a B of n elements of so many bytes. It panics if B is shorter than
// that: the assembly would go on behind it.
func (isa ISA) narrow(y *[Lanes]float32, x []float32, b unsafe.Pointer, n, stride, size int, of func(i int) float32) {
	if len(x) > 0 && (stride < 0 || n < (len(x)-1)*stride+Lanes) {
		panic("vec: a matrix is smaller than the product's shape")
	}
	clear(y[:])
	p := panel{a: at(x), c: &y[0], b: b, bStride: stride * size, k: len(x) &^ (chains - 1)}
	switch {
	case p.k == 0:
	case isa == Generic:
		narrowTwin(y, x[:p.k], of, stride)
	case isa.rows():
		runNarrowWhole(&p, size)
	default:
		runNarrowAVX512(&p, size)
	}
}

func narrowTwin(y *[Lanes]float32, x []float32, of func(i int) float32, stride int) {
	for j := range y {
		var sums [chains]float32
		for k, v := range x {
			sums[k%chains] = FMA(v, of(k*stride+j), sums[k%chains])
		}
		y[j] = (sums[0] + sums[1]) + (sums[2] + sums[3])
	}
}
