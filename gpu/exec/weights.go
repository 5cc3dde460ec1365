package exec

import (
	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/plan"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// weights are a model's weights on the card: where each lies, and the groups and slots of those that move. lay.go lays
// them, upload.go fills them, slots.go moves them. They implement plan.Weights.
type weights struct {
	card   *card
	config *backend.Config
	memory *memory
	slabs  imported // the program's memory that uploads come from
	parts  backend.Parts

	all      []weight                  // by Ref
	experts  map[ir.Ref]*kernel.Matrix // by first Ref: like each expert's matrix, at the address of their table
	spots    map[*kernel.Matrix]spot   // where matrices that move lie
	groups   []group
	slots    []slot
	copies   copies
	adapters adapters
}

// weight is the place of a tensor of the file on the card.
type weight struct {
	name       string // empty: no segment here uses it
	typ        quant.Type
	rows, cols int
	rowBytes   int // bytes of a row in the file
	packBytes  int // bytes of a row as Pack takes it

	placing
	moving
	vector *driver.Buffer // float32, from value at on
	at     int
	factor float32   // by which the vector's values are multiplied
	host   []float32 // a copy from which the host computes the angles of rotations
}

// placing is where the rows of a weight lie in a matrix.
type placing struct {
	matrix *kernel.Matrix // the weight has its rows from first on; nil for vectors
	first  int
	up     bool   // it is the second matrix of a pair
	each   int    // rows of each expert's matrix; 0: it is one
	joined bool   // each expert has the rows of gate, then those of up, in one tensor
	apart  uint64 // bytes from one expert's matrix to the next one
}

// moving is what a weight that moves has more: its first group, how many rows each group has (span), which of a group's
// matrices is its own (part), and its first tile of rows among the group's (tile).
type moving struct {
	moves      bool
	group      int
	span       int
	part, tile int
	pieces     []*kernel.Matrix // by group, if it moves in pieces
	away       bool             // it has no slot: its rows are looked up in table
	table      *driver.Buffer   // all of it, in the host's memory
}

// spot is where a matrix that moves lies: at an offset in its group's memory, or, of experts, at that of its table
// among a part's tables.
type spot struct {
	group int // plan.Absent: it is of experts
	at    uint64
}

func newWeights(c *card, config *backend.Config, b *memory, p *ir.Bound) *weights {
	return &weights{card: c, config: config, memory: b, slabs: importMemory(b, config.Uploaded().Slabs),
		parts: backend.NewParts(p, config.Segments), all: make([]weight, len(p.Weights)),
		experts: map[ir.Ref]*kernel.Matrix{}, spots: map[*kernel.Matrix]spot{}, copies: copies{made: map[copyOf]*copying{}}}
}

// Matrix implements plan.Weights.
func (m *weights) Matrix(r ir.Ref) *kernel.Matrix { return m.all[r].matrix }

// Pieces implements plan.Weights.
func (m *weights) Pieces(r ir.Ref) ([]*kernel.Matrix, int) { return m.all[r].pieces, m.all[r].group }

// Lookup implements plan.Weights.
func (m *weights) Lookup(r ir.Ref) *kernel.Matrix { return m.all[r].lookup() }

// lookup is the matrix in which rows are looked up.
func (w *weight) lookup() *kernel.Matrix {
	if w.table == nil {
		return w.matrix
	}
	x := *w.matrix
	x.Address = w.table.Address
	return &x
}

// Experts implements plan.Weights.
func (m *weights) Experts(r ir.Ref) *kernel.Matrix { return m.experts[r] }

// Moves implements plan.Weights.
func (m *weights) Moves(r ir.Ref) bool { return m.all[r].moves }

// Vector implements plan.Weights.
func (m *weights) Vector(r ir.Ref) uint64 {
	if r == ir.NoRef {
		return 0
	}
	w := &m.all[r]
	return w.vector.Address + uint64(4*w.at)
}

// at returns the function that finds where a matrix lies now, for a stream whose tables of experts begin at an address.
func (m *weights) at(tables uint64) func(*kernel.Matrix) *kernel.Matrix {
	return func(w *kernel.Matrix) *kernel.Matrix {
		s, moves := m.spots[w]
		if !moves {
			return w
		}
		c := *w
		if s.group == plan.Absent {
			c.Address = tables + s.at
		} else {
			c.Address = m.base(&m.groups[s.group]) + s.at
		}
		return &c
	}
}
