package quant

// target is a block to be encoded. The searches choose scales and codes that minimise Σ w·(x - y)², where y is what
// choice comes out of a few sums without cancellation. Products are rounded before they are added, as in the
// decoders, so that all machines write the same file.
type target struct {
	src      []float32
	weighted bool         // by importance; else all w are 1
	x, w, wx [256]float64 // values, weights and their products
	code     [256]uint8   // the answer
	runs     [16]run
}

// load takes a block. Columns without importance still get a little weight, as no scale would be best for a run
// without.
func (b *target) load(src, importance []float32) {
	var mean float64
	for _, w := range importance {
		mean += float64(w) / float64(len(src))
	}
	b.src, b.weighted = src, mean > 0
	for i, v := range src {
		b.x[i], b.w[i] = float64(v), 1
		if b.weighted {
			b.w[i] = float64(importance[i]) + float64(mean*1e-6)
		}
		b.wx[i] = b.w[i] * b.x[i]
	}
}

// run is part of a block that shares a scale.
type run struct {
	x, w, wx []float64
	code     []uint8
}

// cut makes runs of n values.
func (b *target) cut(n int) []run {
	runs := b.runs[:len(b.src)/n]
	for i := range runs {
		runs[i] = run{b.x[n*i:][:n], b.w[n*i:][:n], b.wx[n*i:][:n], b.code[n*i:][:n]}
	}
	return runs
}

// extremes are the least and the largest value.
func (r *run) extremes() (least, most float64) {
	least, most = r.x[0], r.x[0]
	for _, v := range r.x {
		if v < least {
			least = v
		}
		if v > most {
			most = v
		}
	}
	return least, most
}

// whole is added to a float64 below 2⁵¹ and subtracted again to round it to the nearest integer, ties to even:
// neighbouring float64 values are 1 apart at 1.5·2⁵².
const whole = 0x1.8p52

// level is the integer from 0 to top that is nearest to v.
func level(v, top float64) float64 {
	if !(v > 0) {
		return 0
	}
	if v >= top {
		return top
	}
	return float64(v) + whole - whole
}
