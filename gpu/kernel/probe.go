package kernel

// Read is the reading of memory as weights are read, once, for measurements. Never is memory that it would write to
// keep the reads.
type Read struct {
	X, Never uint64
	Quads    uint64 // of 16 bytes, a multiple of ReadQuads
}

// ReadQuads is the units of 16 bytes that a workgroup of Read takes in a turn.
const ReadQuads = 4 * 256

// Uses implements Launch.
func (r *Read) Uses(u *Uses) { u.readBytes(r.X, int(16*r.Quads)) }

// Peak is nothing but multiplications and additions in registers, of half precision or of what is fastest of whole
// numbers, for measurements. Y has PeakBytes.
type Peak struct {
	Y      uint64
	Rounds uint32
	Halves bool
}

// PeakBytes is the memory that Peak writes.
const PeakBytes = 4 << 10

// Uses implements Launch.
func (p *Peak) Uses(u *Uses) { u.writeBytes(p.Y, PeakBytes) }
