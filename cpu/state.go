package cpu

import (
	"fmt"

	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
)

// state is what a node keeps of sequences, float32, by block of its class. A step continues in the block of its first
// row, from the state at the end of the block before if that row is the block's first; it leaves in each block the
// state at the block's end.
type state struct {
	ir.StateLayer
	size  int // of a block: Values, with rows padded to whole vectors
	slots []float32
}

// at is the state in a block.
func (s *state) at(block int32) []float32 { return s.slots[int(block)*s.size:][:s.size] }

// block is the block of a position.
func (s *state) block(span *backend.Span, pos int) int32 {
	return span.Tables[s.Class].At(pos / backend.BlockSize)
}

// sizeOfState is the size of a node's state on this device, in float32.
func sizeOfState(p *ir.Bound, n *ir.Node) int {
	if n.Scan == nil || byChannel(n) {
		return p.States[n.State].Values
	}
	return n.Scan.Heads * n.Scan.KDim * strideOfScan(n.Scan)
}

func strideOfScan(a *ir.ScanArgs) int { return (a.VDim + vec.Lanes - 1) &^ (vec.Lanes - 1) }

// layStates allocates the memory of all states, and what workers need to compute them.
func (m *model) layStates(p *ir.Bound) error {
	m.states = make([]state, len(p.States))
	total, scratch := 0, 0
	eachState(p, func(n *ir.Node) {
		s := &m.states[n.State]
		s.StateLayer, s.size = p.States[n.State], sizeOfState(p, n)
		total += align(4 * s.size * m.config.Blocks[s.Class])
		switch {
		case n.Op == ir.Compress:
			scratch = max(scratch, s.Values)
		case n.Scan == nil:
			kept := s.Values / p.Widths[n.Out]
			scratch = max(scratch, (kept+1)*convChannels)
		case byChannel(n):
			scratch = max(scratch, (3+n.Scan.KDim)*convChannels)
		default:
			scratch = max(scratch, (2+n.Scan.KDim)*strideOfScan(n.Scan))
		}
	})
	memory, err := mem.Alloc(int64(total))
	if err != nil {
		return fmt.Errorf("recurrent states: %w", err)
	}
	m.stateMemory = memory
	for i := range m.states {
		s := &m.states[i]
		if s.size == 0 {
			continue // another device has it
		}
		n := 4 * s.size * m.config.Blocks[s.Class]
		m.Areas[s.Class] = append(m.Areas[s.Class], backend.Area{Memory: memory[:n:n], Each: 4 * s.size})
		s.slots, memory = floats(memory[:n:n]), memory[align(n):]
	}
	for i := range m.workers {
		m.workers[i].state = make([]float32, scratch)
	}
	return nil
}

// eachState visits the nodes that keep a state.
func eachState(p *ir.Bound, visit func(n *ir.Node)) {
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			if n := &p.Segments[s].Nodes[i]; n.Op.KeepsState() {
				visit(n)
			}
		}
	}
}
