package promise

import "time"

// Shape is what the time of a step depends on.
type Shape struct {
	Rows   int
	Seen   int  // positions that its rows attend to, summed
	Prompt bool // it has rows of prompts
	Answer bool // it has rows that continue answers
	Kept   bool // among these, of promised ones
}

// Speed learns how long steps take: a time of their own, and more for each row and for each position that rows attend
// to. Steps with and without rows of prompts are learned apart.
type Speed struct {
	fits          [2]fit
	answers, kept recent
}

// recent is the mean time of steps that continue answers. Older ones count for less.
type recent struct{ n, seconds float64 }

func (p *recent) add(took time.Duration) { p.n, p.seconds = p.n*keep+1, p.seconds*keep+took.Seconds() }

// paced is the time from one token to the next as it was of late, 0 if that is not known.
func (s *Speed) paced(promised bool) time.Duration {
	p := &s.answers
	if promised {
		p = &s.kept
	}
	return seconds(p.seconds / max(p.n, 1))
}

// Observe learns from a step.
func (s *Speed) Observe(of Shape, took time.Duration) {
	s.fit(of).add(of, took.Seconds())
	switch {
	case of.Kept:
		s.kept.add(took)
	case of.Answer:
		s.answers.add(took)
	}
}

func (s *Speed) fit(of Shape) *fit {
	if of.Prompt {
		return &s.fits[0]
	}
	return &s.fits[1]
}

// Known says whether any step was seen.
func (s *Speed) Known() bool { return s.fits[0].n+s.fits[1].n > 0 }

// settled are the costs that were learned.
type settled [2]costs

// settle computes the costs. What was not seen costs what the other kind does.
func (s *Speed) settle() (c settled) {
	for i := range s.fits {
		if f := &s.fits[i]; f.n > 0 {
			c[i] = f.solve()
		} else {
			c[i] = s.fits[1-i].solve()
		}
	}
	return c
}

// step is how long a step is expected to take, in seconds.
func (c *settled) step(of Shape) float64 {
	x := &c[1]
	if of.Prompt {
		x = &c[0]
	}
	return max(x[0]+x[1]*float64(of.Rows)+x[2]*float64(of.Seen), 1e-9)
}

// costs are the seconds of a step, of a row, and of a position that a row attends to.
type costs [3]float64

// fit is a linear fit by least squares. It keeps sums, in which older steps count for less.
type fit struct {
	n, rows, seen                 float64 // of steps, their rows and the positions seen
	rowsRows, rowsSeen, seenSeen  float64 // of products
	seconds, rowsTaken, seenTaken float64 // of times, and of their products with rows and positions
}

// aFewSteps is the number of latest steps that count most.
const (
	aFewSteps = 256
	keep      = 1 - 1.0/aFewSteps
)

func (f *fit) add(of Shape, y float64) {
	rows, seen := float64(of.Rows), float64(of.Seen)
	f.n = f.n*keep + 1
	f.rows = f.rows*keep + rows
	f.seen = f.seen*keep + seen
	f.rowsRows = f.rowsRows*keep + rows*rows
	f.rowsSeen = f.rowsSeen*keep + rows*seen
	f.seenSeen = f.seenSeen*keep + seen*seen
	f.seconds = f.seconds*keep + y
	f.rowsTaken = f.rowsTaken*keep + rows*y
	f.seenTaken = f.seenTaken*keep + seen*y
}

// asRows is how many rows are taken to cost as much as what does not depend on them, as long as steps do not tell.
const asRows = 16

// solve returns the costs. In what the steps seen do not tell apart, such as rows if all had as many, it stays with a
// guess.
func (f *fit) solve() (c costs) {
	if f.n == 0 {
		return c
	}
	row := f.seconds / (asRows*f.n + f.rows)
	guess := costs{asRows * row, row, 0}
	a := [3][3]float64{{f.n, f.rows, f.seen}, {f.rows, f.rowsRows, f.rowsSeen}, {f.seen, f.rowsSeen, f.seenSeen}}
	y := [3]float64{f.seconds, f.rowsTaken, f.seenTaken}
	for i := range a {
		pull := 1e-4 * a[i][i]
		a[i][i] += pull
		y[i] += pull * guess[i]
	}
	for i := range a { // Gauss, without pivots: the matrix is positive definite but for columns of zeros
		if a[i][i] <= 0 {
			continue
		}
		for j := i + 1; j < len(a); j++ {
			m := a[j][i] / a[i][i]
			for k := i; k < len(a); k++ {
				a[j][k] -= m * a[i][k]
			}
			y[j] -= m * y[i]
		}
	}
	for i := len(a) - 1; i >= 0; i-- {
		for k := i + 1; k < len(a); k++ {
			y[i] -= a[i][k] * c[k]
		}
		if a[i][i] > 0 {
			c[i] = y[i] / a[i][i]
		}
	}
	return c
}
