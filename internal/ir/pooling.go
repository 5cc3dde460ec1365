package ir

// Pooling says how the rows of a text become its vector. The numbers are those of <arch>.pooling_type in GGUF files.
type Pooling uint8

const (
	PoolNone  Pooling = iota // each row stays a vector of its own
	PoolMean                 // the mean of all rows
	PoolFirst                // the first row, [CLS]
	PoolLast                 // the last row
	PoolRank                 // the first row, classified: a score
)

// String is the kind's name on command lines.
func (p Pooling) String() string {
	if p > PoolRank {
		return "unknown"
	}
	return [...]string{"none", "mean", "cls", "last", "rank"}[p]
}
