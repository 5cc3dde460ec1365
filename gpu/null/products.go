package null

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
)

// products returns the loop of a launch that takes a matrix, or nil.
func products(l kernel.Launch) func(*access) {
	switch k := l.(type) {
	case *kernel.Pack:
		own := *k
		own.W = copied(k.W)
		return func(x *access) { pack(x, &own) }
	case *kernel.Embed:
		own := *k
		own.W = copied(k.W)
		return func(x *access) { embed(x, &own) }
	case *kernel.HeadLinear:
		own := *k
		own.W = copied(k.W)
		return func(x *access) { headLinear(x, &own) }
	case *kernel.MatVec:
		own := *k
		own.W, own.Experts = copied(k.W), copied(k.Experts)
		return func(x *access) { matVec(x, &own) }
	}
	return nil
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	own := *p
	return &own
}

// rowAt is the offset in bytes of a row of a matrix, or, of a pair, of the first or second (up) matrix. Their tiles of
// 32 rows alternate.
func rowAt(w *kernel.Matrix, r int, up bool) uint64 {
	tile := r / kernel.TileRows
	if w.Pair {
		if tile *= 2; up {
			tile++
		}
	}
	return uint64(4 * kernel.PaddedWidth(w.Cols) * (tile*kernel.TileRows + r%kernel.TileRows))
}

// matrix is a matrix, or a pair, in memory.
type matrix struct {
	w   *kernel.Matrix
	all []float32
}

func matrixAt(x *access, w *kernel.Matrix, at uint64) matrix {
	return matrix{w, told[float32](x, at, w.RowTiles()*kernel.TileRows*kernel.PaddedWidth(w.Cols))}
}

func (m *matrix) row(r int, up bool) []float32 {
	return m.all[rowAt(m.w, r, up)/4:][:kernel.PaddedWidth(m.w.Cols)]
}

func pack(x *access, k *kernel.Pack) {
	for r := range k.Rows {
		to := keeps[float32](x, k.W.Address, rowAt(k.W, k.First+r, k.Up), kernel.PaddedWidth(k.W.Cols))
		clear(to[copy(to, told[float32](x, row(k.File, r, k.W.Cols), k.W.Cols)):])
	}
}

func embed(x *access, k *kernel.Embed) {
	w := matrixAt(x, k.W, k.W.Address)
	for r := range k.Rows {
		id := told[int32](x, k.IDs+uint64(4*r), 1)[0]
		if id < 0 {
			id = kept[int32](x, k.Drawn, uint64(4*(-1-id)), 1)[0]
		}
		copy(out[float32](x, row(k.Y, r, k.YStride), k.W.Cols), w.row(int(id), false))
	}
}

func headLinear(x *access, k *kernel.HeadLinear) {
	w := matrixAt(x, k.W, k.W.Address)
	for r := range there(x, k.Count, k.Rows) {
		from := in[float32](x, row(k.X, r, k.XStride), k.Heads*k.W.Cols)
		y := out[float32](x, row(k.Y, r, k.YStride), k.W.Rows)
		for o := range y {
			h := o / (k.W.Rows / k.Heads)
			y[o] = float32(dot(w.row(o, false), from[h*k.W.Cols:(h+1)*k.W.Cols]))
		}
	}
}

// dot is the sum of products of weights and activations, as many as there are activations. Each fourth one is added to
// a sum of its own, so that additions do not wait for each other.
func dot(w, x []float32) float64 {
	var sums [4]float64
	for len(x) >= 4 {
		a, b := w[:4], x[:4]
		sums[0] += float64(a[0]) * float64(b[0])
		sums[1] += float64(a[1]) * float64(b[1])
		sums[2] += float64(a[2]) * float64(b[2])
		sums[3] += float64(a[3]) * float64(b[3])
		w, x = w[4:], x[4:]
	}
	for i, v := range x {
		sums[i] += float64(w[i]) * float64(v)
	}
	return sums[0] + sums[1] + sums[2] + sums[3]
}

// column is one row of x, the row of y that its product goes to, and where the matrix begins.
type column struct {
	from, to int
	expert   uint32
	at       uint64
}

func matVec(x *access, k *kernel.MatVec) {
	if k.Experts != nil && k.Experts.Shares != 0 {
		summed(x, k)
		return
	}
	for _, c := range columns(x, k) {
		put(x, k, c.to, outputs(x, k, c))
	}
}

// columns lists the columns of a product: rows in use, or pairs of rows and experts.
func columns(x *access, k *kernel.MatVec) (all []column) {
	e := k.Experts
	if e == nil {
		for c := range there(x, k.Count, k.Columns) {
			all = append(all, column{from: c, to: c, at: k.W.Address})
		}
		return all
	}
	for i := range e.Entries {
		if e.Grouped == 0 {
			all = gathered(x, k, all, in[uint32](x, e.List+uint64(4*i), 1)[0], []uint32{uint32(i)})
			continue
		}
		entry := in[uint32](x, e.List+uint64(4*i*(e.Grouped+1)), e.Grouped+1)
		all = gathered(x, k, all, entry[0], entry[1:])
	}
	return all
}

// gathered appends the columns of an expert's pairs.
func gathered(x *access, k *kernel.MatVec, all []column, expert uint32, pairs []uint32) []column {
	if expert == kernel.NoExpert {
		return all
	}
	for _, p := range pairs {
		if p != kernel.NoExpert {
			all = append(all, column{int(p) / max(1, k.Experts.Share), int(p), expert, expertAt(x, k, expert)})
		}
	}
	return all
}

// expertAt is where an expert's matrix begins.
func expertAt(x *access, k *kernel.MatVec, expert uint32) uint64 {
	return told[uint64](x, k.W.Address+8*uint64(expert), 1)[0]
}

// outputs is the product for a column, with biases added, and, of a pair, gate and up joined.
func outputs(x *access, k *kernel.MatVec, c column) []float32 {
	v, factor := activations(x, k, c.from), 1.0
	rounded := k.Halves != 0 && k.Gain == 0 && k.Experts == nil && (!k.W.Pair || k.Bias == 0)
	if rounded {
		v, factor = halved(x, k, c.from, v)
	}
	n, all := k.W.Rows, matrixAt(x, k.W, c.at)
	of := func(biases uint64) []float32 {
		if biases != 0 {
			biases = row(biases, int(c.expert), n)
		}
		return vector(x, biases, n)
	}
	bias, upBias := of(k.Bias), of(k.UpBias)
	times := func(r int, up bool, bias []float32) float32 {
		w := all.row(r, up)
		if rounded {
			w = inHalves(w)
		}
		return float32(dot(w, v)*factor) + or(bias, r, 0)
	}
	y := make([]float32, n)
	for r := range y {
		if y[r] = times(r, false, bias); k.W.Pair {
			y[r] = gate(k.Act, y[r], times(r, true, upBias))
		}
	}
	return y
}

// activations is a row of x as weights are multiplied by it: normalised, if it has a gain, and quantised. What pads it
// must be 0, since cards multiply whole tiles.
func activations(x *access, k *kernel.MatVec, r int) []float32 {
	v := make([]float32, kernel.PaddedWidth(k.W.Cols))
	switch size := kernel.QuantisedBytes(k.W.Cols); {
	case k.Gain != 0:
		from, gain := in[float32](x, row(k.X, r, k.XStride), k.W.Cols), vector(x, k.Gain, k.W.Cols)
		(&ir.NormArgs{Eps: k.Eps}).Apply(v[:k.W.Cols], from, gain, nil)
		if !k.W.Float {
			bytes := make([]byte, size)
			quantise(bytes, v)
			dequantise(v, bytes)
		}
	case k.W.Float:
		copy(v, in[float32](x, row(k.X, r, len(v)), len(v)))
	default:
		dequantise(v, in[byte](x, k.X+uint64(r*size), size))
	}
	for i := k.W.Cols; i < len(v); i++ {
		if v[i] != 0 {
			panic(fault{fmt.Errorf("value %d of row %d of what it multiplies is %v, and not 0, beyond a width of %d", i, r,
				v[i], k.W.Cols)})
		}
	}
	return v[:k.W.Cols]
}

// put stores a row of y.
func put(x *access, k *kernel.MatVec, r int, v []float32) {
	if k.Residual != 0 {
		for i, of := range in[float32](x, row(k.Residual, r, k.YStride), len(v)) {
			v[i] += of
		}
	}
	if k.Glue != kernel.SwiGLUToInt8 {
		copy(out[float32](x, row(k.Y, r, k.YStride), len(v)), v)
		return
	}
	size, padded := kernel.QuantisedBytes(k.W.Rows), make([]float32, kernel.PaddedWidth(k.W.Rows))
	copy(padded, v)
	quantise(out[byte](x, k.Y+uint64(r*size), size), padded)
}

// summed adds up the experts of each row.
func summed(x *access, k *kernel.MatVec) {
	e, each := k.Experts, *k
	each.Residual = 0
	for r := range e.Entries {
		sum := make([]float32, k.W.Rows)
		for s := range e.Share {
			p := r*e.Share + s
			expert := in[uint32](x, e.List+uint64(4*p), 1)[0]
			share := in[float32](x, e.Shares+uint64(4*p), 1)[0]
			for i, v := range outputs(x, &each, column{p, r, expert, expertAt(x, k, expert)}) {
				sum[i] += float32(share * v)
			}
		}
		put(x, k, r, sum)
	}
}

// inHalves rounds values to half precision.
func inHalves(v []float32) []float32 {
	to := make([]float32, len(v))
	for i := range v {
		to[i] = ofHalf(halfOf(v[i]))
	}
	return to
}

// halved rounds a row of activations to half precision and stores it in k.Halves. It is scaled down if halves do not
// reach so far: products are to be multiplied by factor, which lies behind all rows.
func halved(x *access, k *kernel.MatVec, r int, v []float32) (to []float32, factor float64) {
	const most = 14
	largest, down := 0.0, 0
	for _, a := range v {
		largest = max(largest, math.Abs(float64(a)))
	}
	if !math.IsInf(largest, 0) && largest > 0 {
		down = max(0, math.Ilogb(largest)-most)
	}
	to = make([]float32, len(v))
	for i, a := range v {
		to[i] = float32(math.Ldexp(float64(a), -down))
	}
	to, factor = inHalves(to), math.Ldexp(1, down)
	wide := kernel.PaddedWidth(k.W.Cols)
	words := out[uint16](x, k.Halves+uint64(2*wide*r), wide)
	for i := range to {
		words[i] = halfOf(to[i])
	}
	clear(words[len(to):])
	out[float32](x, k.Halves+uint64(2*wide*k.Columns+4*r), 1)[0] = float32(factor)
	return to, factor
}
