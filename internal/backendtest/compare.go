package backendtest

import (
	"math"

	"pgregory.net/rapid"
)

// distance is the largest absolute difference, and its index. NaN counts as infinitely far.
func distance(got, want []float32) (worst float64, at int) {
	if len(got) != len(want) {
		return math.Inf(1), 0
	}
	for i := range got {
		d := math.Abs(float64(got[i]) - float64(want[i]))
		if math.IsNaN(d) {
			return math.Inf(1), i
		}
		if d > worst {
			worst, at = d, i
		}
	}
	return worst, at
}

// sameBits fails at the first element that differs, and reports its row and feature.
func sameBits(t rapid.TB, what string, width int, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: row %d, feature %d: %v (%#08x), want %v (%#08x)", what, i/width, i%width,
				got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
}
