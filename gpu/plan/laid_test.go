package plan_test

import (
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/null"
	"github.com/sluice-ai/sluice/gpu/plan"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// laid is where the weights of a program lie, in memory that is nowhere: each address has a name.
type laid struct {
	p        *ir.Bound
	kernels  kernel.Table
	moves    bool // groups of matrices share slots
	next     uint64
	names    map[uint64]string // by address, of what begins there
	matrices map[ir.Ref]*kernel.Matrix
	experts  map[ir.Ref]*kernel.Matrix
	vectors  map[ir.Ref]uint64
	pieces   map[ir.Ref][]*kernel.Matrix
	group    map[ir.Ref]int // of the first piece
}

// far is how far apart the memories are that have names.
const far = 1 << 40

func lay(p *ir.Bound, f *plan.Fusion, kernels kernel.Table, moves bool) (*laid, error) {
	l := &laid{p: p, kernels: kernels, moves: moves, names: map[uint64]string{}, matrices: map[ir.Ref]*kernel.Matrix{},
		experts: map[ir.Ref]*kernel.Matrix{}, vectors: map[ir.Ref]uint64{}, pieces: map[ir.Ref][]*kernel.Matrix{},
		group: map[ir.Ref]int{}}
	if err := l.layPieces(); err != nil {
		return nil, err
	}
	for _, s := range f.Stacks {
		if err := l.layMatrix(s); err != nil {
			return nil, err
		}
	}
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			if n := &p.Segments[s].Nodes[i]; n.Op == ir.Experts {
				if err := l.layExperts(n.Experts); err != nil {
					return nil, err
				}
			}
		}
	}
	for i := range p.Weights {
		r := ir.Ref(i)
		switch {
		case l.matrices[r] != nil || l.vectors[r] != 0 || l.pieces[r] != nil:
		case p.Weights[r].Experts > 0 && p.Weights[r].Use == ir.Matrix:
		case p.Weights[r].Use&ir.Vector != 0:
			l.vectors[r] = l.memory(p.Weights[r].Name)
		default:
			if err := l.layMatrix(&plan.Stack{Refs: []ir.Ref{r}}); err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

// memory is memory with a name.
func (l *laid) memory(names ...string) uint64 {
	l.next += far
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], ".weight")
	}
	l.names[l.next] = strings.Join(names, "+")
	return l.next
}

func (l *laid) namesOf(refs []ir.Ref) (names []string) {
	for _, r := range refs {
		names = append(names, l.p.Weights[r].Name)
	}
	return names
}

func (l *laid) layMatrix(s *plan.Stack) error {
	rows := 0
	for _, r := range s.Refs {
		rows += l.p.Weights[r].Rows
	}
	if s.Pair {
		rows /= 2
	}
	m, err := l.kernels.Matrix(l.p.Types[s.Refs[0]], rows, l.p.Weights[s.Refs[0]].Cols, s.Pair)
	m.Address = l.memory(l.namesOf(s.Refs)...)
	for _, r := range s.Refs {
		l.matrices[r] = &m
	}
	if len(s.Biases) > 0 {
		at := l.memory(l.namesOf(s.Biases)...)
		for _, r := range s.Biases {
			l.vectors[r] = at
			at += uint64(4 * l.p.Weights[r].Cols)
		}
	}
	return err
}

// layPieces divides matrices whose groups are pieces, if they move.
func (l *laid) layPieces() error {
	for g, of := range l.p.On(l.p.All()) {
		if !l.moves || of.Each == 0 {
			continue
		}
		r := of.Weights[0]
		from, to := of.Rows(&l.p.Weights[r])
		m, err := l.kernels.Matrix(l.p.Types[r], to-from, l.p.Weights[r].Cols, false)
		if err != nil {
			return err
		}
		m.Address = l.memory(fmt.Sprintf("%s[%d:%d]", l.p.Weights[r].Name, from, to))
		if l.pieces[r] == nil {
			l.group[r] = g
		}
		l.pieces[r] = append(l.pieces[r], &m)
	}
	return nil
}

// layExperts has gate and up be a pair, if they are alike or one.
func (l *laid) layExperts(e *ir.ExpertsArgs) error {
	all := [][]ir.Ref{{e.Gate, e.Up}, {e.Down}}
	if e.Joined() || e.Ungated() {
		all[0] = all[0][:1]
	} else if l.p.Types[e.Gate] != l.p.Types[e.Up] {
		all = [][]ir.Ref{{e.Gate}, {e.Up}, {e.Down}}
	}
	for _, refs := range all {
		w, pair := &l.p.Weights[refs[0]], e.Joined() && refs[0] == e.Gate || len(refs) == 2
		rows := w.Rows / w.Experts
		if e.Joined() && refs[0] == e.Gate {
			rows /= 2
		}
		m, err := l.kernels.Matrix(l.p.Types[refs[0]], rows, w.Cols, pair)
		if err != nil {
			return err
		}
		m.Address = l.memory(l.namesOf(refs)...)
		l.experts[refs[0]] = &m
	}
	return nil
}

func (l *laid) Matrix(r ir.Ref) *kernel.Matrix          { return l.matrices[r] }
func (l *laid) Pieces(r ir.Ref) ([]*kernel.Matrix, int) { return l.pieces[r], l.group[r] }
func (l *laid) Experts(r ir.Ref) *kernel.Matrix         { return l.experts[r] }
func (l *laid) Moves(r ir.Ref) bool                     { return l.moves }

// Lookup is of a matrix that moves the one that stays in the host's memory.
func (l *laid) Lookup(r ir.Ref) *kernel.Matrix {
	if l.pieces[r] == nil {
		return l.matrices[r]
	}
	m, _ := l.kernels.Matrix(l.p.Types[r], l.p.Weights[r].Rows, l.p.Weights[r].Cols, false)
	m.Address = l.memory("table of " + l.p.Weights[r].Name)
	return &m
}

func (l *laid) Vector(r ir.Ref) uint64 {
	if r == ir.NoRef {
		return 0
	}
	return l.vectors[r]
}

// planned is a plan, and where all lies that it speaks of.
type planned struct {
	*plan.Plan
	*laid
	places plan.Places
}

// planOf plans a small model of a family for a card that is played.
func planOf(family string, o null.Options, kv backend.KV, moves bool) (*planned, error) {
	m, err := backendtest.Small(family, quant.Q8_0)
	if err != nil {
		return nil, err
	}
	if moves {
		m.Piece = 1 // rounded up to some rows
	}
	d := null.Open(o)
	defer d.Close(false)
	return planOn(d.Kernels(), m, kv, moves)
}

// planOn plans a model for a card's kernels.
func planOn(kernels kernel.Table, m *backendtest.Model, kv backend.KV, moves bool) (*planned, error) {
	f := plan.Fuse(m.Bound, true, kernels, kv)
	l, err := lay(m.Bound, f, kernels, moves)
	if err != nil {
		return nil, err
	}
	t := plan.Target{Kernels: kernels, Weights: l, KV: kv, Rows: 256, Wanted: 256, Apart: kernels.Apart(m.Bound)}
	for i := range m.KV {
		keys, values := l.memory(fmt.Sprint("keys", i)), l.memory(fmt.Sprint("values", i))
		t.Caches = append(t.Caches, plan.Cache{Keys: keys, Values: values})
	}
	for i := range m.States {
		t.States = append(t.States, l.memory(fmt.Sprint("states", i)))
	}
	p, err := plan.New(m.Bound, f, t)
	if err != nil {
		return nil, err
	}
	return &planned{p, l, plan.Places{Scratch: l.memory("scratch"), Drawn: l.memory("drawn"), Best: l.memory("best"),
		Entry: l.memory("entry"), Tables: l.memory("tables"), Result: l.memory("result")}}, nil
}
