//go:build arm64 && !purego

package vec

// Best is what every processor of arm64 has.
func Best() ISA { return NEON }

const nothing = "vec: there is no assembly for this on arm64"
