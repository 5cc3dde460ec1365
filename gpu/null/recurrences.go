package null

import (
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// recurrences returns the loop of a launch that continues states, or nil.
func recurrences(l kernel.Launch) func(*access) {
	switch k := l.(type) {
	case *kernel.Conv:
		return bind(conv, k)
	case *kernel.Scan:
		return bind(scan, k)
	}
	return nil
}

// span is rows of one sequence, with the layer's states.
type span struct {
	place
	of              *kernel.Recurrent
	row, rows, kept int
}

// spansOf lists the spans that have rows.
func spansOf(x *access, of *kernel.Recurrent) (all []span) {
	for i := range of.N {
		v := told[kernel.Span](x, of.Spans+uint64(kernel.SpanBytes*i), 1)[0]
		if v.Rows > 0 {
			all = append(all, span{place{int(v.Position), v.Table}, of, int(v.Row), int(v.Rows), int(v.Kept)})
		}
	}
	return all
}

// at is the offset of the state, of so many values, in the block that holds a position.
func (s *span) at(x *access, position, values int) uint64 {
	return uint64(4 * values * s.block(x, s.of.Tables, position))
}

// before is the state that the span continues: zeros at the begin of a sequence.
func (s *span) before(x *access, values int) []float32 {
	state := make([]float32, values)
	if s.position > 0 {
		copy(state, kept[float32](x, s.of.States, s.at(x, s.position-1, values), values))
	}
	return state
}

// leave stores the state after row i, if its position is a block's last one, or if it is the last row that leaves a
// state.
func (s *span) leave(x *access, i int, state []float32) {
	if p := s.position + i; i < s.kept && (p%backend.BlockSize == backend.BlockSize-1 || i+1 == s.kept) {
		copy(keeps[float32](x, s.of.States, s.at(x, p, len(state)), len(state)), state)
	}
}

func conv(x *access, k *kernel.Conv) {
	weights, bias, past := told[float32](x, k.Weights, k.Channels*k.Size), vector(x, k.Bias, k.Channels), k.Size-1
	if bias == nil {
		bias = make([]float32, k.Channels)
	}
	for _, s := range spansOf(x, &k.Of) {
		state := s.before(x, past*k.Channels) // the inputs of the last positions, the oldest first
		for i := range s.rows {
			now := in[float32](x, row(k.X, s.row+i, k.XStride), k.Channels)
			y := out[float32](x, row(k.Y, s.row+i, k.YStride), k.Channels)
			state = append(state, now...)
			ir.Convolve(y, state, weights, bias, 1)
			state = append(state[:0], state[k.Channels:]...)
			s.leave(x, i, state)
		}
	}
}

func scan(x *access, k *kernel.Scan) {
	a := k.Args
	decay, shift, skip := told[float32](x, k.Decay, a.Heads), vector(x, k.Shift, a.Heads), vector(x, k.Skip, a.Heads)
	for _, s := range spansOf(x, &k.Of) {
		state := s.before(x, a.Heads*a.KDim*a.VDim)
		for i := range s.rows {
			of := func(j, n int) []float32 { return in[float32](x, row(k.In[j].At, s.row+i, k.In[j].Stride), n) }
			taken := ir.Scanned{Q: of(0, a.Groups*a.KDim), K: of(1, a.Groups*a.KDim), V: of(2, a.Heads*a.VDim),
				Delta: of(3, a.Heads)}
			if k.Delta {
				taken.Beta = of(4, a.Heads)
			}
			a.Next(out[float32](x, row(k.Y.At, s.row+i, k.Y.Stride), a.Heads*a.VDim), state, &taken, decay, shift, skip)
			s.leave(x, i, state)
		}
	}
}
