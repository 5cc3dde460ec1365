package quant

import "math"

// gridBook is a grid prepared for search. Trying all points for each group would take too long: each value is rounded
// to a level, which gives a corner, and the points nearest to each corner are computed beforehand.
type gridBook struct {
	tables []*gridTable // one, or two for the two shifts of IQ1
	shared int          // values that share a table
	values int          // of a group
	tries  []float64
}

// gridTable is a grid with its values as whole numbers.
type gridTable struct {
	level *codebook
	base  int // how many levels
	point [][8]float64
	near  [][]uint16 // by corner, a number in that base with the first value lowest: the points nearest to it
}

// newGridTable makes the levels of a grid whole numbers.
func newGridTable(g *grid, factor, shift float64) *gridTable {
	numbers := make([]float64, len(g.levels))
	for i, l := range g.levels {
		numbers[i] = float64(l)*factor + shift
	}
	t := &gridTable{level: newCodebook(nil, numbers...), base: len(numbers)}
	t.point = make([][8]float64, len(g.points)/2)
	for i := range t.point {
		for j := range g.values {
			t.point[i][j] = numbers[g.point(i)>>(g.bits*j)&(1<<g.bits-1)]
		}
	}
	t.near = make([][]uint16, int(math.Pow(float64(t.base), float64(g.values))))
	for i := range t.near {
		var corner [8]float64
		for j, rest := 0, i; j < g.values; j, rest = j+1, rest/t.base {
			corner[j] = numbers[rest%t.base]
		}
		t.near[i] = t.nearest(&corner)
	}
	return t
}

// nearest finds the points nearest to a corner, or only the corner itself if it is a point.
func (t *gridTable) nearest(corner *[8]float64) []uint16 {
	const most = 8
	var square [most + 1]float64
	near := make([]uint16, 0, most+1)
	for i := range t.point {
		away := 0.0
		for j, v := range t.point[i] {
			away += (v - corner[j]) * (v - corner[j])
		}
		if away == 0 {
			return []uint16{uint16(i)}
		}
		at := len(near)
		if at == most && away >= square[most-1] {
			continue
		}
		near = append(near, 0)
		for ; at > 0 && square[at-1] > away; at-- {
			near[at], square[at] = near[at-1], square[at-1]
		}
		near[at], square[at] = uint16(i), away
		near = near[:min(len(near), most)]
	}
	return near
}

// fit finds a positive scale.
func (k *gridBook) fit(r *run) (scale float64) {
	least, most := r.extremes()
	most = max(most, -least)
	if most == 0 {
		return 0
	}
	var b best
	for _, number := range k.tries {
		b.take(k.sums(r, number/most))
	}
	return b.improve(k, r)
}

func (k *gridBook) sums(r *run, inverse float64) (xl, ll float64) {
	for at := 0; at < len(r.x); at += k.shared {
		_, bestXL, bestLL := k.choose(r, at, inverse)
		xl += bestXL
		ll += bestLL
	}
	return xl, ll
}

// choose finds the better table for the values that share one, from index at on.
func (k *gridBook) choose(r *run, at int, inverse float64) (table int, xl, ll float64) {
	least := math.Inf(1)
	for i, t := range k.tables {
		var txl, tll float64
		for g := at; g < at+k.shared; g += k.values {
			_, gxl, gll := t.search(r, g, k.values, inverse)
			txl += gxl
			tll += gll
		}
		if cost := tll - float64(2*inverse*txl); cost < least {
			least, table, xl, ll = cost, i, txl, tll
		}
	}
	return table, xl, ll
}

// search finds the best point for n values of a run, from index at on.
func (t *gridTable) search(r *run, at, n int, inverse float64) (index uint16, xl, ll float64) {
	var w, wx [8]float64
	corner, twice := 0, 2*inverse
	for j := n - 1; j >= 0; j-- {
		corner = corner*t.base + int(t.level.code[place(float64(r.x[at+j]*twice))])
		w[j], wx[j] = r.w[at+j], r.wx[at+j]
	}
	near := t.near[corner]
	if len(near) > 1 {
		least := math.Inf(1)
		for _, i := range near {
			var cost float64 // Σ w·number² - 2·inverse·Σ w·x·number
			for j, v := range t.point[i][:n] {
				cost += float64(v * (float64(w[j&7]*v) - float64(twice*wx[j&7])))
			}
			if cost < least {
				least, index = cost, i
			}
		}
	} else {
		index = near[0]
	}
	for j, v := range t.point[index][:n] {
		xl += float64(wx[j&7] * v)
		ll += float64(float64(w[j&7]*v) * v)
	}
	return index, xl, ll
}

// encode writes the number of each group's point, low byte first, and of its table, to the codes of the group's first
// values.
func (k *gridBook) encode(r *run, scale float64) {
	inverse := inverse(scale)
	for at := 0; at < len(r.x); at += k.shared {
		table, _, _ := k.choose(r, at, inverse)
		for g := at; g < at+k.shared; g += k.values {
			index, _, _ := k.tables[table].search(r, g, k.values, inverse)
			r.code[g], r.code[g+1], r.code[g+2] = uint8(index), uint8(index>>8), uint8(table)
		}
	}
}
