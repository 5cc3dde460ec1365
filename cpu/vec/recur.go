package vec

// Recurrence is one step of a matrix S of len(K) rows and N columns: Sᵢⱼ = Kᵢ·Wⱼ + Decay·Sᵢⱼ, a product and then a
// fused multiply-add. Its result is Yⱼ = Σᵢ Sᵢⱼ·Qᵢ, a chain of fused multiply-adds from 0 on in order of i. Columns are
// independent.
type Recurrence struct {
	S      []float32
	K, Q   []float32 // by row
	W, Y   []float32 // by column
	Decay  float32
	N      int // columns, a multiple of Lanes
	Stride int // elements from row to row
}

// recurrence is a tile of at most 64 columns, as the assembly takes it.
type recurrence struct {
	s, k, q, w, y *float32 // s, w and y begin at the tile's first column
	stride        int      // bytes
	n             int      // rows, at least 1
	mask          uint64   // columns: ones in groups of Lanes (AVX-512)
	a             float32
}

// Recur computes a step. It panics if a slice is shorter than the shape says: the assembly would read past its end.
func (isa ISA) Recur(p *Recurrence) {
	rows := len(p.K)
	if rows == 0 || p.N <= 0 {
		clear(p.Y)
		return
	}
	if p.N%Lanes != 0 || len(p.S) < (rows-1)*p.Stride+p.N || len(p.Q) < rows || len(p.W) < p.N || len(p.Y) < p.N {
		panic("vec: a matrix is smaller than the recurrence's shape")
	}
	if isa == Generic {
		recurTwin(p)
		return
	}
	width := 64
	if isa.rows() {
		width = Lanes
	}
	for j := 0; j < p.N; j += width {
		t := recurrence{
			s: at(p.S[j:]), k: at(p.K), q: at(p.Q), w: at(p.W[j:]), y: at(p.Y[j:]),
			stride: 4 * p.Stride, n: rows, a: p.Decay, mask: ^uint64(0) >> (64 - min(width, p.N-j)),
		}
		if isa.rows() {
			recurWhole(&t)
		} else {
			recurAVX512(&t)
		}
	}
}
