package ir

// Side is which positions of a text attention sees and keeps, where an encoder read the first ones: so many as the span
// says (Span.Heard). Rows at these see nothing.
type Side uint8

const (
	BothSides Side = iota // no encoder read anything
	HeardSide             // rows behind what the encoder read see all of that, and nothing else
	SaidSide              // they see what stands behind it, up to their own
)

// Keeps says whether a row sees a position, of a text whose encoder read so many.
func (s Side) Keeps(heard, pos int) bool {
	return s == BothSides || (s == HeardSide) == (pos < heard)
}

// Within is the part that the row at a position sees of the positions from … to−1. None: to is at most from.
func (s Side) Within(heard, pos, from, to int) (int, int) {
	switch {
	case s == BothSides:
		return from, to
	case pos < heard:
		return from, from
	case s == HeardSide:
		return from, min(to, heard)
	}
	return max(from, heard), to
}

// String is the side's name.
func (s Side) String() string {
	return [...]string{BothSides: "both", HeardSide: "heard", SaidSide: "said"}[min(s, SaidSide)]
}
