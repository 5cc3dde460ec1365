package null

import (
	"math"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// attentions returns the loop of a launch that uses caches of keys and values, or nil.
func attentions(l kernel.Launch) func(*access) {
	switch k := l.(type) {
	case *kernel.Rotate:
		return bind(rotateRows, k)
	case *kernel.Append:
		return bind(appendRows, k)
	case *kernel.Seal:
		return bind(sealBlocks, k)
	case *kernel.Attend:
		return bind(attend, k)
	}
	return nil
}

// place is where a row stands in its sequence, and where its blocks are listed in the block tables. The host counts
// from a sequence's first block, which may be gone: so table may point before the listed ones, modulo 2³².
type place struct {
	position int
	table    uint32
}

func placeOf(x *access, rows uint64, r int) place {
	v := told[uint32](x, rows+uint64(8*r), 2)
	return place{int(v[0]), v[1]}
}

// block is the number of the block that holds a position.
func (p place) block(x *access, tables uint64, position int) int {
	return int(told[uint32](x, tables+4*uint64(p.table+uint32(position/backend.BlockSize)), 1)[0])
}

// run is the keys, or the values, of one KV head in one block, in a cache's form.
type run struct {
	form      backend.Form
	cache, at uint64
	features  int
}

// runOf is the run of a block's KV head, in a cache with each bytes for a block: kernels of cards may want more of them
// than the form has.
func runOf(h *kernel.Heads, form backend.Form, cache, each uint64, features, block, head int) run {
	return run{form: form, cache: cache, features: features, at: each*uint64(block) + each/uint64(h.KV)*uint64(head)}
}

func keysOf(h *kernel.Heads, cache uint64, block, head int) run {
	return runOf(h, h.Format().K.Kept(), cache, h.KeyBytes(1), h.Features, block, head)
}

func valuesOf(h *kernel.Heads, cache uint64, block, head int) run {
	return runOf(h, h.Format().V.Kept(), cache, h.ValueBytes(1), h.ValueFeatures(), block, head)
}

func (r *run) bytes() int { return r.form.Bytes(r.features) }

// store writes the values of a row at a position of the block.
func (r *run) store(x *access, position int, v []float32) {
	r.form.Put(keeps[byte](x, r.cache, r.at, r.bytes()), r.features, position, v)
}

// load is the values of n positions of the block, from one on.
func (r *run) load(x *access, position, n int) []float32 {
	to := make([]float32, n*r.features)
	r.form.Get(to, kept[byte](x, r.cache, r.at, r.bytes()), r.features, position)
	return to
}

func appendRows(x *access, k *kernel.Append) {
	h := &k.Heads
	for r := range there(x, k.Count, k.N) {
		keys := in[float32](x, row(k.K, r, k.KStride), h.KV*h.Features)
		values := in[float32](x, row(k.V, r, k.VStride), h.KV*h.ValueFeatures())
		storeRow(x, h, k.Keys, k.Values, placeOf(x, k.Rows, r), k.Tables, keys, values)
	}
}

// storeRow writes the keys and values of a row's KV heads to their block.
func storeRow(x *access, h *kernel.Heads, keys, values uint64, at place, tables uint64, key, value []float32) {
	block, position, n := at.block(x, tables, at.position), at.position%backend.BlockSize, h.ValueFeatures()
	for head := range h.KV {
		k, v := keysOf(h, keys, block, head), valuesOf(h, values, block, head)
		k.store(x, position, key[head*h.Features:(head+1)*h.Features])
		v.store(x, position, value[head*n:(head+1)*n])
	}
}

// sealBlocks copies each open block whose last position is a row to its sealed form.
func sealBlocks(x *access, k *kernel.Seal) {
	h, open := &k.Heads, k.Heads.Recent()
	for r := range there(x, k.Count, k.N) {
		at, recent := placeOf(x, k.Rows, r), placeOf(x, k.Recent.Rows, r)
		if at.position%backend.BlockSize != backend.BlockSize-1 {
			continue
		}
		to, from := at.block(x, k.Tables, at.position), recent.block(x, k.Tables, at.position)
		for head := range h.KV {
			move := func(to, from run) { to.store(x, 0, from.load(x, 0, backend.BlockSize)) }
			move(keysOf(h, k.Keys, to, head), keysOf(open, k.Recent.Keys, from, head))
			move(valuesOf(h, k.Values, to, head), valuesOf(open, k.Recent.Values, from, head))
		}
	}
}

// rotateRows rotates queries where they are, and stores keys, rotated, and values.
func rotateRows(x *access, k *kernel.Rotate) {
	h := &k.Heads
	for r := range there(x, k.Count, k.N) {
		from := in[float32](x, row(k.X, r, k.XStride), (h.Query+2*h.KV)*h.Features)
		q, key, value := turned(x, h, &k.Attention, r, from)
		copy(out[float32](x, row(k.X, r, k.XStride), len(q)), q)
		storeRow(x, h, k.Keys, k.Values, placeOf(x, k.Rows, r), k.Tables, key, value)
	}
}

// turned is the queries, keys and values of a row: normalised, if that is asked for, and rotated.
func turned(x *access, h *kernel.Heads, k *kernel.Attention, r int, from []float32) (q, key, value []float32) {
	v, f, angles := append([]float32(nil), from...), h.Features, []float32(nil)
	if h.Dims > 0 && k.Angles != 0 {
		angles = told[float32](x, row(k.Angles, r, h.Dims), h.Dims)
	}
	for head := range h.Query + h.KV {
		one := v[head*f : (head+1)*f]
		if k.Normed && k.Alone {
			gain := k.QueryGain
			if head >= h.Query {
				gain = k.KeyGain
			}
			(&ir.NormArgs{Eps: k.Eps}).Apply(one, one, vector(x, gain, f), nil)
		}
		rotate(one, one, angles, h.Interleaved)
	}
	return v[:h.Query*f], v[h.Query*f : (h.Query+h.KV)*f], v[(h.Query+h.KV)*f:]
}

func attend(x *access, k *kernel.Attend) {
	h, width := &k.Heads, k.Heads.Query*k.Heads.ValueFeatures()
	own(x, k.Parts, int(h.PartBytes(k.N)))
	sinks := vector(x, k.Sinks, h.Query)
	for r := range there(x, k.Count, k.N) {
		at, recent := placeOf(x, k.Rows, r), place{}
		if k.Recent.Keys != 0 {
			recent = placeOf(x, k.Recent.Rows, r)
		}
		var q []float32
		if k.Alone {
			var key, value []float32
			from := in[float32](x, row(k.X, r, k.XStride), (h.Query+2*h.KV)*h.Features)
			q, key, value = turned(x, h, &k.Attention, r, from)
			storeRow(x, h, k.Keys, k.Values, at, k.Tables, key, value)
		} else {
			q = in[float32](x, row(k.X, r, k.XStride), h.Query*h.Features)
		}
		y := make([]float32, kernel.PaddedWidth(width))
		for kv := range h.KV {
			attendHeads(x, k, at, recent, kv, q, sinks, y)
		}
		if size := kernel.QuantisedBytes(width); k.Quantise {
			quantise(out[byte](x, k.Y+uint64(r*size), size), y)
		} else {
			copy(out[float32](x, row(k.Y, r, k.YStride), width), y)
		}
	}
}

// attendHeads computes the query heads that share a KV head: keys and values are read once for all of them.
func attendHeads(x *access, k *kernel.Attend, at, recent place, kv int, q, sinks, y []float32) {
	h, n := &k.Heads, k.Heads.ValueFeatures()
	first, each := firstSeen(&k.Attention, at.position), h.Query/h.KV
	own := at.position + 1 // first position that lies in the open block; none does without sealing
	if k.Recent.Keys != 0 {
		own = at.position - at.position%backend.BlockSize
	}
	keys := seen(x, k, at, first, own, func(block int) run { return keysOf(h, k.Keys, block, kv) })
	values := seen(x, k, at, first, own, func(block int) run { return valuesOf(h, k.Values, block, kv) })
	if open, from := h.Recent(), max(first, own); k.Recent.Keys != 0 {
		keys = append(keys, seen(x, k, recent, from, at.position+1, func(block int) run {
			return keysOf(open, k.Recent.Keys, block, kv)
		})...)
		values = append(values, seen(x, k, recent, from, at.position+1, func(block int) run {
			return valuesOf(open, k.Recent.Values, block, kv)
		})...)
	}
	for i := range each {
		head, sink := kv*each+i, math.Inf(-1)
		if sinks != nil {
			sink = float64(sinks[head])
		}
		weights, total := weighted(k, q[head*h.Features:][:h.Features], keys, sink)
		sums := make([]float64, n)
		for p, w := range weights {
			for d, v := range values[p*n:][:n] {
				sums[d] += w * float64(v)
			}
		}
		for d, sum := range sums {
			y[head*n+d] = float32(sum / total)
		}
	}
}

// seen is the keys, or values, of the positions [from, end) of a row's sequence.
func seen(x *access, k *kernel.Attend, at place, from, end int, of func(block int) run) (all []float32) {
	for p := from; p < end; {
		next := min(end, (p/backend.BlockSize+1)*backend.BlockSize)
		r := of(at.block(x, k.Tables, p))
		all = append(all, r.load(x, p%backend.BlockSize, next-p)...)
		p = next
	}
	return all
}

// weighted is the weights of positions, before they are divided by their sum, and this sum with the sink's weight.
// Scores and sinks are logarithms to base 2.
func weighted(k *kernel.Attend, q, keys []float32, sink float64) (weights []float64, total float64) {
	most := sink
	for ; len(keys) > 0; keys = keys[len(q):] {
		s := dot(keys[:len(q)], q) * float64(k.Scale)
		if k.Cap > 0 {
			s = ir.Cap(s, float64(k.Cap))
		}
		weights = append(weights, s*math.Log2E)
		most = math.Max(most, s*math.Log2E)
	}
	total = math.Exp2(sink - most)
	for i, s := range weights {
		weights[i] = math.Exp2(s - most)
		total += weights[i]
	}
	return weights, total
}

// firstSeen is the first position that a row sees: of the window that ends with it, or of its own chunk.
func firstSeen(k *kernel.Attention, position int) int {
	if k.Window == 0 || position < k.Window {
		return 0
	}
	if k.Chunked {
		return position - position%k.Window
	}
	return position + 1 - k.Window
}
