package kernel

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
)

// MaxSplits is the most parts that a row's positions are divided into.
const MaxSplits = 16

// Row is one row of a step, as kernels read it.
type Row struct {
	Position uint32 // in its sequence
	Table    uint32 // index in the block tables of its sequence's first block
}

// Heads is the shape of attention, and of what is cached for it.
type Heads struct {
	Query, KV, Features int
	Values              int // features of a value; 0: as many as a key's
	Dims                int // features that rotate, from the first; 0: none
	Interleaved         bool
	Cache               backend.Format // zero: f16
}

// ValueFeatures is the features of a value.
func (h *Heads) ValueFeatures() int {
	if h.Values == 0 {
		return h.Features
	}
	return h.Values
}

// Format is the format of the cache.
func (h *Heads) Format() backend.Format {
	if h.Cache == (backend.Format{}) {
		return backend.KVF16.Format
	}
	return h.Cache
}

// String names the shape.
func (h *Heads) String() string {
	return fmt.Sprintf("%d/%d heads of %d and %d in %s", h.Query, h.KV, h.Features, h.ValueFeatures(), h.Format())
}

// Recent is the shape of what is cached in blocks that are not sealed yet.
func (h *Heads) Recent() *Heads {
	f, open := h.Format(), *h
	open.Cache = backend.Format{Name: f.Name, K: backend.Side{Open: f.K.Open}, V: backend.Side{Open: f.V.Open}}
	return &open
}

// KeyBytes is the memory of blocks of keys of one layer.
func (h *Heads) KeyBytes(blocks int) uint64 {
	return uint64(blocks) * uint64(h.KV) * uint64(keyRunBytes(h.Format().K.Kept(), h.Features))
}

// ValueBytes is the memory of blocks of values of one layer.
func (h *Heads) ValueBytes(blocks int) uint64 {
	return uint64(blocks) * uint64(h.KV) * uint64(valueRunBytes(h.Format().V.Kept(), h.ValueFeatures()))
}

// PartBytes is the memory that Attend needs for the partial results of a number of rows. Where blocks are sealed, a row
// has one more: of its own block.
func (h *Heads) PartBytes(rows int) uint64 {
	parts := MaxSplits
	if h.Format().Seals() {
		parts++
	}
	return uint64(rows*h.Query*parts) * uint64(h.ValueFeatures()+4) * 4
}

// Splits is how many parts a row at a position has.
func Splits(position int) int {
	depth := 512
	for depth <= position {
		depth *= 2
	}
	parts := 16
	if depth < 2048 {
		parts = 8
	}
	return position/(depth/parts) + 1
}

// AttentionRows is how many rows attend at once, if a card has nothing to say to it: see Table.
const AttentionRows = 128

// MostSplits is the most parts that any row up to a position has. It may be more than the last row has, since parts get
// longer where positions pass a power of two.
func MostSplits(position int) int {
	most := 8
	if position >= 2047 {
		most = MaxSplits
	}
	return max(most, Splits(position))
}

// Attention is one layer's attention for the rows of a step. All but the last fields are addresses.
// Wide: they are the arguments of a kernel.
type Attention struct {
	X            uint64 // float32 rows: query heads; for Rotate and Alone, key heads and value heads follow
	Y            uint64 // rows for the projection: quantised, or float32
	Keys, Values uint64 // the layer's cache
	Parts        uint64
	Rows         uint64 // of Row
	Tables       uint64 // of uint32 block numbers
	Angles       uint64 // [row][Dims/2] cosine and sine, float32
	// QueryGain and KeyGain are weights, by feature of a head, of the norms of query and key heads; 0: ones. See
	// Normed.
	QueryGain, KeyGain uint64
	Count              uint64 // address of a uint32, how many of the rows are in use; 0: all
	Sinks              uint64 // a logit for each query head, times log2(e); 0: none

	// Recent is where a row finds the keys and values of its own block, if full blocks are sealed; zero: with the others.
	Recent Recent

	XStride, YStride int // in float32
	N                int // rows
	// Alone says that no two rows are of one sequence: then rotation and storing are part of attention. Else Rotate
	// must be launched before.
	Alone    bool
	Normed   bool    // if Alone: heads of queries and keys are normalised first
	Eps      float32 // of these norms
	Quantise bool
	Scale    float32
	Cap      float32 // of scores; 0: none
	Window   int     // how many positions a row sees; 0: all
	Chunked  bool    // a row sees positions of its own chunk of Window positions alone
	Depth    int     // no row's position is beyond it
}

// Recent is the memory of open blocks, in which keys and values are stored until a block is full, and where each row
// stands in it: Rows, of Row.
type Recent struct{ Keys, Values, Rows uint64 }

// Rotate rotates queries in place, and rotates and stores keys, and stores values: for heads for which a table's Fused
// says yes.
type Rotate struct {
	Heads Heads
	Attention
}

// Uses implements Launch.
func (r *Rotate) Uses(u *Uses) {
	width := (r.Heads.Query + 2*r.Heads.KV) * r.Heads.Features
	u.readFloats(r.X, r.N, r.XStride, width)
	u.writeFloats(r.X, r.N, r.XStride, r.Heads.Query*r.Heads.Features)
	u.writeAll(r.Keys)
	u.writeAll(r.Values)
}

// Append stores rows of keys, rotated before, and of values in a cache of any format. Fields are as Attention's.
type Append struct {
	Heads            Heads
	K, V             uint64 // float32 rows
	KStride, VStride int    // in float32
	Keys, Values     uint64
	Rows, Tables     uint64
	N                int
	Count            uint64
}

// Uses implements Launch.
func (a *Append) Uses(u *Uses) {
	u.readFloats(a.K, a.N, a.KStride, a.Heads.KV*a.Heads.Features)
	u.readFloats(a.V, a.N, a.VStride, a.Heads.KV*a.Heads.ValueFeatures())
	u.writeAll(a.Keys)
	u.writeAll(a.Values)
}

// Own is the attention of each row to its own block alone, where full blocks are sealed.
func (a *Attention) Own() Attention {
	own := *a
	own.Keys, own.Values, own.Rows = a.Recent.Keys, a.Recent.Values, a.Recent.Rows
	return own
}

// Seal converts open blocks to the form that the cache format has for sealed blocks: those whose last position is a row
// of the step. Rows were appended before. Fields are as Attention's.
type Seal struct {
	Heads        Heads
	Keys, Values uint64
	Recent       Recent
	Rows, Tables uint64
	N            int
	Count        uint64
}

// SealShared is the shared memory in bytes that sealing takes for heads of so many features: eight rows of floats, and
// for each 32 features of a row three words beside a code each.
func SealShared(features int) int { return 32*features + 384*((features+31)/32) + 128 }

// Uses implements Launch.
func (s *Seal) Uses(u *Uses) {
	u.readAll(s.Recent.Keys)
	u.readAll(s.Recent.Values)
	u.writeAll(s.Keys)
	u.writeAll(s.Values)
}

// Attend computes attention, and joins the partial results of its parts. Where a table's Fused says no, X has query
// heads alone, rotated before, keys and values were stored before, and Y is float32.
type Attend struct {
	Heads Heads
	Attention
}

// Uses implements Launch.
func (a *Attend) Uses(u *Uses) {
	heads, out := a.Heads.Query, a.Heads.Query*a.Heads.ValueFeatures()
	if a.Alone {
		heads += 2 * a.Heads.KV
		u.writeAll(a.Keys)
		u.writeAll(a.Values)
	}
	u.readFloats(a.X, a.N, a.XStride, heads*a.Heads.Features)
	u.readAll(a.Keys)
	u.readAll(a.Values)
	if a.Recent.Keys != 0 {
		u.readAll(a.Recent.Keys)
		u.readAll(a.Recent.Values)
	}
	u.writeBytes(a.Parts, int(a.Heads.PartBytes(a.N)))
	if a.Quantise {
		u.writeBytes(a.Y, a.N*QuantisedBytes(out))
	} else {
		u.writeFloats(a.Y, a.N, a.YStride, out)
	}
}
