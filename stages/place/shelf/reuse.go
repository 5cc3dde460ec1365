package shelf

import "math"

// reuse measures how much an expert's past says of its future. Of each expert it keeps how often it was used, in
// several averages that forget at different speeds. Which of them tell most depends on the text and the model: now
// and then it writes down the averages of a layer, counts what is used during the next times, and fits by least squares
// what it counted to what it had written down. What is worth keeping is what the fit expects to be used most.
//
// So experts of lasting popularity are told from those in fashion, and from those of a cycle that just were used and
// will not be soon.
type reuse struct {
	layers []averages
	turn   int // of the layer whose experts are written down next
	fit    fit
}

// memories is how many averages there are, memory by how much of each is left after a time.
const memories = 8

var memory = [memories]float64{0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.9995}

// usual is how much each memory tells, as long as little was observed.
var usual = [memories]float64{0.02, 0.03, 0.05, 0.1, 0.2, 0.2, 0.2, 0.2}

const (
	terms   = memories + 1 // of the fit: the averages and a constant
	horizon = 16           // times that a use is expected in
)

// averages are those of a layer's experts, and what is being counted.
type averages struct {
	of      [][memories]float64
	full    [memories]float64   // what an expert would have that was always used: averages begin at zero
	past    [][memories]float64 // shares of that, as they were written down
	counted []float64           // since, by expert
	left    int                 // times to count; 0: nothing is written down
}

func newReuse(experts []int) *reuse {
	r := &reuse{layers: make([]averages, len(experts))}
	for i, n := range experts {
		r.layers[i] = averages{of: make([][memories]float64, n), past: make([][memories]float64, n),
			counted: make([]float64, n)}
	}
	r.fit.begin()
	return r
}

func (r *reuse) touch(l int, experts []int32) {
	a := &r.layers[l]
	a.count(&r.fit, experts)
	for i := range memories {
		a.full[i] = a.full[i]*memory[i] + 1 - memory[i]
	}
	for e := range a.of {
		for i := range memories {
			a.of[e][i] *= memory[i]
		}
	}
	for _, e := range experts {
		for i := range memories {
			a.of[e][i] += 1 - memory[i]
		}
	}
	if l == r.turn && a.left == 0 {
		for e := range a.past {
			for i := range memories {
				a.past[e][i] = a.of[e][i] / a.full[i]
			}
		}
		clear(a.counted)
		a.left = horizon
		r.turn = (r.turn + 1) % len(r.layers)
	}
}

// count goes on with what was written down, and gives it to the fit when the horizon is reached.
func (a *averages) count(f *fit, experts []int32) {
	if a.left == 0 {
		return
	}
	for _, e := range experts {
		a.counted[e] += float64(a.left)
	}
	if a.left--; a.left > 0 {
		return
	}
	for e := range a.past {
		f.add(&a.past[e], a.counted[e]/(horizon*(horizon+1)/2))
	}
	f.solve()
}

// expect is the share of the next times at which an expert is used.
func (r *reuse) expect(l, expert int) float64 {
	w, a := &r.fit.weights, &r.layers[l]
	sum := w[memories]
	for i := range memories {
		if a.full[i] > 0 {
			sum += float64(w[i] * a.of[expert][i] / a.full[i])
		}
	}
	return sum
}

// fit is a linear fit by least squares that forgets slowly.
type fit struct {
	products [terms][terms]float64 // of terms
	targets  [terms]float64        // of terms and what they should give
	weights  [terms]float64
}

// begin expects of the future what usual makes of the averages, as strongly as some observations would.
func (f *fit) begin() {
	const strength = 1
	for i, w := range usual {
		f.products[i][i], f.targets[i], f.weights[i] = strength, strength*w, w
	}
	f.products[memories][memories] = strength
}

func (f *fit) add(x *[memories]float64, y float64) {
	var t [terms]float64
	copy(t[:], x[:])
	t[memories] = 1
	for i := range t {
		for j := range t {
			f.products[i][j] += float64(t[i] * t[j])
		}
		f.targets[i] += float64(t[i] * y)
	}
}

// solve finds the weights by Cholesky's method, and then lets all that was observed count a little less.
func (f *fit) solve() {
	const keep, ridge = 0.999, 1e-3
	var c [terms][terms]float64
	for i := range terms {
		for j := range i + 1 {
			sum := f.products[i][j]
			if i == j {
				sum += ridge
			}
			for k := range j {
				sum -= float64(c[i][k] * c[j][k])
			}
			if i == j {
				c[i][i] = math.Sqrt(sum)
			} else {
				c[i][j] = sum / c[j][j]
			}
		}
	}
	w := f.targets
	for i := range terms {
		for k := range i {
			w[i] -= float64(c[i][k] * w[k])
		}
		w[i] /= c[i][i]
	}
	for i := terms - 1; i >= 0; i-- {
		for k := i + 1; k < terms; k++ {
			w[i] -= float64(c[k][i] * w[k])
		}
		w[i] /= c[i][i]
	}
	f.weights = w
	for i := range terms {
		for j := range terms {
			f.products[i][j] *= keep
		}
		f.targets[i] *= keep
	}
}
