package cpu

import (
	"fmt"
	"unsafe"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
)

// workspace is the memory of one worker.
type workspace struct {
	queries queries
	halves  []uint16          // one head of K on its way into the cache
	bytes   []int8            // or it
	row     kernels.RowBuffer // of an embedding
	strips  kernels.Strips    // of weights in place
	choice  choice

	gathered     int       // rows that gatherFloats can hold
	gatherFloats []float32 // prepared activations of an expert's rows
	gatherTiles  []byte    // their Acts.Tiles; nil: none
	acts         kernels.Acts
	_            [64]byte
}

// layStep makes the only step of the ring, with memory for its logits.
func (m *model) layStep() (err error) {
	if m.logitMemory, err = mem.Alloc(4 * int64(m.config.MaxWanted) * int64(m.program.OutputWidth())); err != nil {
		return fmt.Errorf("logits: %w", err)
	}
	m.ring = []*backend.Step{{Logits: floats(m.logitMemory)}}
	return nil
}

// layScratch takes the memory for values and for attention: each worker's largest queries, and what split rows leave.
func (m *model) layScratch(p *ir.Bound, values int) error {
	shape, experts, threads := shapeOfQueries(p), shapeOfExperts(p), m.device.pool.size()
	gathered, tiles := align(experts.gathered()*experts.rowBytes)/4, 0
	if gathered > 0 && m.device.set.Tiled() {
		tiles = align(kernels.TileBytes(experts.gathered(), experts.rowBytes)) / 4
	}
	size := values + threads*(shape.floats()+gathered+tiles) + splitQueries*(shape.stride+2)
	memory, err := mem.Alloc(4 * int64(size))
	if err != nil {
		return fmt.Errorf("activations: %w", err)
	}
	m.scratchMemory = memory
	a := &arena{floats(memory)}
	m.scratch = a.take(values)
	m.workers = make([]workspace, threads)
	for i := range m.workers {
		m.workers[i] = workspace{
			queries: shape.take(a), halves: make([]uint16, shape.dim), bytes: make([]int8, shape.dim),
			choice: newChoice(p), gathered: experts.gathered(), gatherFloats: a.take(gathered),
		}
		if tiles > 0 {
			m.workers[i].gatherTiles = bytesOf(a.take(tiles))
		}
	}
	m.dispatch = newDispatch(experts, m.config.MaxRows, threads)
	m.split = split{
		chunks:   make([]attendChunk, 0, m.config.MaxRows*shape.kvHeads+splitQueries),
		merges:   make([]merge, splitMerges),
		partials: newSoftmax(splitQueries, shape.stride, a),
	}
	return nil
}

// layStrips takes the memory in which workers pack strips of weights that are in place.
func (m *model) layStrips() error {
	if m.config.InPlace == nil {
		return nil
	}
	row := 0
	for i := range m.weights {
		if w := &m.weights[i]; w.matrix != nil {
			row = max(row, w.row)
		}
	}
	size := align(kernels.StripsBytes(row))
	memory, err := mem.Alloc(int64(size * len(m.workers)))
	if err != nil {
		return fmt.Errorf("strips of weights: %w", err)
	}
	m.stripMemory = memory
	for i := range m.workers {
		m.workers[i].strips = kernels.NewStrips(memory[i*size:][:size:size])
	}
	return nil
}

// arena is memory that is given away piece by piece.
type arena struct{ left []float32 }

func (a *arena) take(n int) []float32 {
	part := a.left[:n:n]
	a.left = a.left[n:]
	return part
}

// align rounds bytes up to cache lines.
func align(n int) int { return (n + 63) &^ 63 }

// floats views memory as float32.
func floats(memory []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/4)
}

// bytesOf views float32 memory as bytes.
func bytesOf(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}
