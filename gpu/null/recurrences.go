package null

import (
	"math"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// recurrences are the loops of what goes on from states.
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
	of        *kernel.Recurrent
	row, rows int
}

// spansOf lists the spans that have rows.
func spansOf(x *access, of *kernel.Recurrent) (all []span) {
	for i := range of.N {
		v := told[uint32](x, of.Spans+uint64(16*i), 4)
		if v[1] > 0 {
			all = append(all, span{place{int(v[2]), v[3]}, of, int(v[0]), int(v[1])})
		}
	}
	return all
}

// at is where the state begins, of so many values, of the block that has a position.
func (s *span) at(x *access, position, values int) uint64 {
	return uint64(4 * values * s.block(x, s.of.Tables, position))
}

// before is the state that the span goes on from: zeros at the begin of a sequence.
func (s *span) before(x *access, values int) []float32 {
	state := make([]float32, values)
	if s.position > 0 {
		copy(state, kept[float32](x, s.of.States, s.at(x, s.position-1, values), values))
	}
	return state
}

// leave keeps the state after row i, if that is the last one of a block or of the span.
func (s *span) leave(x *access, i int, state []float32) {
	if p := s.position + i; p%backend.BlockSize == backend.BlockSize-1 || i+1 == s.rows {
		copy(keeps[float32](x, s.of.States, s.at(x, p, len(state)), len(state)), state)
	}
}

func conv(x *access, k *kernel.Conv) {
	weights, bias, past := told[float32](x, k.Weights, k.Channels*k.Size), vector(x, k.Bias, k.Channels), k.Size-1
	for _, s := range spansOf(x, &k.Of) {
		state := s.before(x, past*k.Channels) // the inputs of the last positions, the oldest first
		for i := range s.rows {
			now := in[float32](x, row(k.X, s.row+i, k.XStride), k.Channels)
			y := out[float32](x, row(k.Y, s.row+i, k.YStride), k.Channels)
			state = append(state, now...)
			for c := range y {
				sum := float64(or(bias, c, 0))
				for j := range k.Size {
					sum += float64(weights[c*k.Size+j]) * float64(state[j*k.Channels+c])
				}
				y[c] = float32(sum)
			}
			state = append(state[:0], state[k.Channels:]...)
			s.leave(x, i, state)
		}
	}
}

func scan(x *access, k *kernel.Scan) {
	a := k.Args
	decay, shift, skip := told[float32](x, k.Decay, a.Heads), vector(x, k.Shift, a.Heads), vector(x, k.Skip, a.Heads)
	for _, s := range spansOf(x, &k.Of) {
		state := s.before(x, a.Heads*a.VDim*a.KDim) // [head][value][key]
		for i := range s.rows {
			of := func(j, n int) []float32 { return in[float32](x, row(k.In[j].At, s.row+i, k.In[j].Stride), n) }
			q, key, v := of(0, a.Groups*a.KDim), of(1, a.Groups*a.KDim), of(2, a.Heads*a.VDim)
			delta, beta := of(3, a.Heads), []float32(nil)
			if k.Delta {
				beta = of(4, a.Heads)
			}
			y := out[float32](x, row(k.Y.At, s.row+i, k.Y.Stride), a.Heads*a.VDim)
			for h := range a.Heads {
				g := a.Group(h) * a.KDim
				d := softplus(float64(delta[h] + or(shift, h, 0)))
				head := head{a, state[h*a.VDim*a.KDim:][:a.VDim*a.KDim], q[g : g+a.KDim], key[g : g+a.KDim],
					math.Exp(float64(decay[h]) * d)}
				for o := range a.VDim {
					value := float64(v[h*a.VDim+o])
					add := d * value
					if k.Delta {
						add = float64(beta[h]) * (value - head.keep*dot(head.of(o), head.key))
					}
					y[h*a.VDim+o] = float32(head.step(o, add) + float64(or(skip, h, 0))*value)
				}
			}
			s.leave(x, i, state)
		}
	}
}

// head is one of a scan's in a row.
type head struct {
	a                 *ir.ScanArgs
	state, query, key []float32
	keep              float64
}

// of is the column of the state that a value has.
func (h *head) of(value int) []float32 { return h.state[value*h.a.KDim : (value+1)*h.a.KDim] }

// step brings a column to the next position, and reads it.
func (h *head) step(value int, add float64) float64 {
	column := h.of(value)
	for i := range column {
		column[i] = float32(h.keep*float64(column[i]) + float64(h.key[i])*add)
	}
	return float64(h.a.Scale) * dot(column, h.query)
}

// softplus is ln(1+eˣ).
func softplus(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
