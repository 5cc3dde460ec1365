package kernel

// Read reads memory once, in the order in which kernels read weights, to measure how fast that is. Never is where it
// would write a result, so that no compiler drops the reads.
type Read struct {
	X, Never uint64
	Quads    uint64 // number of 16-byte units, a multiple of ReadQuads
}

// ReadQuads is how many units of 16 bytes a workgroup of Read reads in an iteration.
const ReadQuads = 4 * 256

// Uses implements Launch.
func (r *Read) Uses(u *Uses) { u.readBytes(r.X, int(16*r.Quads)) }

// Peak multiplies and adds in registers and does nothing else, to measure peak throughput: in half precision, or with
// the fastest instructions for integers. Y has PeakBytes.
type Peak struct {
	Y      uint64
	Rounds uint32
	Halves bool
}

// PeakBytes is the memory that Peak writes.
const PeakBytes = 4 << 10

// Uses implements Launch.
func (p *Peak) Uses(u *Uses) { u.writeBytes(p.Y, PeakBytes) }
