package report

import "slices"

// Spread is the median of several runs with their extremes.
type Spread struct {
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	Runs   []float64 `json:"runs"` // in the order they ran
}

// SpreadOf returns the spread of runs, of which there must be at least one.
func SpreadOf(runs []float64) Spread {
	sorted := slices.Sorted(slices.Values(runs))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1], Runs: runs}
}

// Ratio returns the spread of the ratios of runs that were made in turns, pair by pair, so that a disturbance affects
// both sides of a ratio.
func Ratio(ours, theirs []float64) Spread {
	ratios := make([]float64, min(len(ours), len(theirs)))
	for i := range ratios {
		ratios[i] = ours[i] / theirs[i]
	}
	return SpreadOf(ratios)
}
