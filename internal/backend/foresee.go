package backend

import "math"

// Blind answers for the models of a device that foresees no route.
type Blind struct{}

// Foresees implements Model.
func (Blind) Foresees(int) (route int, ok bool) { return 0, false }

// MarginUnit is how many margins are a standard deviation of what a row is chosen by. MarginFloor is the least one:
// what is so far below the cut is as unlikely as can be told.
const (
	MarginUnit  = 16
	MarginFloor = -24
)

// Margins says how far each of a row's experts is above the cut by what its router chooses by: halfway between the last
// of used keys that is chosen and the first that is not. margins has the length of keys.
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
