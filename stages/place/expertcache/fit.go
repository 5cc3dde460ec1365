package expertcache

import "math"

// fit is a linear regression by least squares, in which older observations count less.
type fit struct {
	products [terms][terms]float64 // sums of products of two terms
	targets  [terms]float64        // sums of products of a term and the target
	weights  [terms]float64
}

// begin starts from the weights usual, as if some observations had confirmed them.
func (f *fit) begin() {
	const strength = 1
	for i, w := range usual {
		f.products[i][i], f.targets[i], f.weights[i] = strength, strength*w, w
	}
}

func (f *fit) add(x *[terms]float64, y float64) {
	for i := range x {
		for j := range x {
			f.products[i][j] += float64(x[i] * x[j])
		}
		f.targets[i] += float64(x[i] * y)
	}
}

// solve finds the weights by Cholesky decomposition, and then lets all earlier observations count a little less.
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
