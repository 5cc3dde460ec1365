//go:build (!amd64 && !arm64) || purego

package vec

// Best is the largest instruction set that this machine has.
func Best() ISA { return Generic }

const nothing = "vec: there is no assembly for this machine"
