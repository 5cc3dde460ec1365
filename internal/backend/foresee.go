package backend

import "math"

// Blind implements Foresees for the models of a device that foresees no route.
type Blind struct{}

// Foresees implements Model.
func (Blind) Foresees(int) (route int, ok bool) { return 0, false }

// MarginUnit is the margin of one standard deviation of a row's keys, the values by which its experts are chosen.
// MarginFloor is the lowest margin: an expert so far below the cut is as unlikely as can be told.
const (
	MarginUnit  = 16
	MarginFloor = -24
)

// Margins computes how far the key of each of a row's experts is above the cut: the middle between the last key that is
// chosen, used of them being chosen, and the first that is not. margins has the length of keys.
func Margins(margins []int8, keys []float32, used int) {
	var mean, square float64
	for _, k := range keys {
		mean += float64(k) / float64(len(keys))
	}
	for _, k := range keys {
		square += float64((float64(k) - mean) * (float64(k) - mean))
	}
	spread := math.Sqrt(square / float64(len(keys)))
	cut := cutOf(keys, used)
	for e, k := range keys {
		margins[e] = 0
		if spread > 0 {
			margins[e] = int8(max(MarginFloor, min(math.MaxInt8, math.Round(MarginUnit*(float64(k)-cut)/spread))))
		}
	}
}

// cutOf is halfway between the used-th key and the next one.
func cutOf(keys []float32, used int) float64 {
	limit, last := math.Inf(1), math.Inf(-1) // keys that were passed, and how far down they go
	passed := 0
	for {
		next, same := math.Inf(-1), 0
		for _, k := range keys {
			switch v := float64(k); {
			case v >= limit || v < next:
			case v == next:
				same++
			default:
				next, same = v, 1
			}
		}
		switch {
		case same == 0:
			return last // all are used
		case passed >= used:
			return (last + next) / 2
		case passed+same > used:
			return next
		}
		limit, last, passed = next, next, passed+same
	}
}
