package cpu

import "github.com/sluice-ai/sluice/cpu/kernels"

// linear multiplies several inputs by their matrices. Its work is the tiles of all matrices, in a row; a worker takes
// some neighbouring tiles and multiplies them by every row of the step.
type linear struct {
	ex       *execution
	wanted   bool
	products []product
	now      []product // of the running step, or of its part
	bounds   []int     // first tile of each chunk of theirs, and the end
	rows     int       // rows that both were made for, if the segment ran whole; else 0
}

// shares divide tiles into chunks: each chunk is a share of the tiles left, so chunks get smaller and workers end
// together, even if one has only half of its core.
type shares struct {
	tiles    int
	share    int
	least    int // tiles of a chunk
	multiple int // the size of a chunk is a multiple of it, if it can be
}

// product multiplies the rows that a group has of a matrix.
type product struct {
	group int
	out   place
	w     *kernels.Matrix
	bias  []float32 // nil: none
	acts  *kernels.Acts
	from  int // number of its first tile among all tiles of now
}

// Chunks are small, but large enough that claiming one costs little.
const (
	chunksPerWorker = 8
	chunkBytes      = 32 << 10 // at least, of weights times rows
)

func (l *linear) chunks() int {
	rows := l.ex.rows(l.wanted)
	if rows == 0 {
		return 0
	}
	if l.ex.part == nil && rows == l.rows { // nothing has changed since the step before
		for i := range l.now {
			l.now[i].acts.Rows = rows
		}
		return len(l.bounds) - 1
	}
	l.rows = 0
	if l.ex.part == nil {
		l.rows = rows
	}
	bytes, tiles := 0, 0
	l.now = l.now[:0]
	for i := range l.products {
		if p := l.products[i]; l.ex.takes(p.group) {
			p.acts.Rows, p.from = rows, tiles
			bytes, tiles = bytes+p.w.Tiles()*p.w.StripBytes(), tiles+p.w.Tiles()
			l.now = append(l.now, p)
		}
	}
	l.bounds = append(l.bounds[:0], 0)
	if tiles > 0 {
		s := newShares(tiles, rows, l.ex.device.pool.size(), bytes)
		l.bounds = s.divide(l.bounds)
	}
	return len(l.bounds) - 1
}

// newShares divides tiles of so many bytes for a product with some rows. One row is limited by memory bandwidth, and
// each chunk begins with weights that were not prefetched: chunks are large. With more rows, a chunk has to stay in the
// cache until all rows are multiplied.
func newShares(tiles, rows, workers, bytes int) shares {
	s := shares{tiles: tiles, share: 4 * workers, multiple: 2} // strips are multiplied by many rows in pairs
	if rows == 1 {
		s.share, s.multiple = 3*workers/2, 1
	}
	s.least = max(s.multiple, chunkBytes*tiles/(bytes*rows))
	return s
}

// divide appends the end of each chunk.
func (s *shares) divide(bounds []int) []int {
	for left := s.tiles; left > 0; {
		left -= s.next(left)
		bounds = append(bounds, s.tiles-left)
	}
	return bounds
}

// next is the size of a chunk when so many tiles are left.
func (s *shares) next(left int) int {
	n := max(left/s.share, s.least)
	multiple := s.multiple
	if n >= kernels.Streams { // all of one row's streams are of a length then
		multiple = kernels.Streams
	}
	return min(n/multiple*multiple, left)
}

func (l *linear) run(worker, chunk int) {
	from, to := l.bounds[chunk], l.bounds[chunk+1]
	for i := range l.now {
		p := &l.now[i]
		if a, b := max(from, p.from)-p.from, min(to-p.from, p.w.Tiles()); a < b {
			l.multiply(&l.ex.workers[worker].strips, p, a, b)
		}
	}
}

// multiply computes the outputs of tiles [a, b).
func (l *linear) multiply(strips *kernels.Strips, p *product, a, b int) {
	strips.MatMul(l.ex.device.set, l.ex.area(&p.out)[p.out.off:], p.out.stride, p.w, p.bias, a, b, p.acts)
}
