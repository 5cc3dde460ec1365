package kernel

// Box is where the cards of a team leave their parts of values for one another. Each card has one, in memory of its
// own, which the others write; At is, by card, where this one reaches it.
//
// A box begins with flags: of each card FlagBlocks uint32, in which it writes the number of an exchange when a block
// of its kernel has left all it has. Then come, twice, since a card may be one exchange ahead, and of each card, its
// values of a few rows, each with the number of the exchange behind it; then, likewise, those of many rows, Room bytes.
type Box struct {
	Member int
	Room   int // bytes of a card's part of a value at most
	At     []uint64
}

// Sizes in a box.
const (
	FlagBlocks = 128      // blocks of a kernel that exchanges many rows, at most
	FewShared  = 16 << 10 // values of a part that is exchanged with the numbers of exchanges between its values
)

// MostMembers is how many cards a team has at most.
const MostMembers = 8

// Bytes is the size of a box.
func (b *Box) Bytes() uint64 { return b.Many(2) }

// Few is where values of a few rows lie in a box, of a card, by the number of the exchange.
func (b *Box) Few(number uint32, member int) uint64 {
	flags := uint64(4 * FlagBlocks * len(b.At))
	return flags + uint64(int(number&1)*len(b.At)+member)*8*FewShared
}

// Many is where those of many rows begin, of the first card: number is 0 or 1, or 2 for the end.
func (b *Box) Many(number int) uint64 {
	from := uint64(len(b.At)) * (4*FlagBlocks + 2*8*FewShared)
	return from + uint64(number*len(b.At)*b.room())
}

// room is Room, rounded up so that each part begins at a multiple of 256 bytes.
func (b *Box) room() int { return (b.Room + 255) &^ 255 }

// Part is where a card's values of many rows lie in a box.
func (b *Box) Part(number uint32, member int) uint64 {
	return b.Many(int(number&1)) + uint64(member*b.room())
}

// Unanswered is the status of a step that waited for another card of its team in vain; see Finite.
const Unanswered = 1<<32 - 1

// Exchange puts together a value of which each card of a team has a part: rows of Width float32. It leaves its own part
// in the boxes of the others, waits for theirs, and adds all up in the order of the cards, and Residual behind them.
// With Join, parts lie side by side in Y's rows, where the card's own lies already. All cards launch the same exchanges
// in the same order, of as many rows. Y may be Residual, whose stride is Y's.
// Wide: they are the arguments of a kernel.
type Exchange struct {
	Box   *Box
	First uint64 // address of a uint32: the number of the step's first exchange, from 1 on
	Index int    // of this one among the step's

	Part, Y, Residual   uint64 // Residual: 0 for none
	PartStride, YStride int    // in float32
	Width, Rows         int
	Join                bool
	Count               uint64 // of a uint32, how many of the rows are in use
	Status              uint64 // of a uint32, which becomes Unanswered
}

// Uses implements Launch. Boxes are one memory: exchanges follow one another.
func (e *Exchange) Uses(u *Uses) {
	width := e.Width
	if e.Join {
		width *= len(e.Box.At)
	}
	u.readFloats(e.Part, e.Rows, e.PartStride, e.Width)
	u.readFloats(e.Residual, e.Rows, e.YStride, width)
	u.writeFloats(e.Y, e.Rows, e.YStride, width)
	u.writeAll(e.Box.At[e.Box.Member])
}
