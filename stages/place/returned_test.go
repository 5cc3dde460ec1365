package place

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// returning is a program of 16 layers of 2 MiB, of which rows pass through the first two a second time.
func returning(t *testing.T) *ir.Bound {
	const layers, width = 16, 1024
	b := ir.NewBuilder("test", nil)
	x := b.Embed("token_embd", 64, width)
	for l := range layers + 2 {
		b.Layer(l)
		b.Within(fmt.Sprintf("blk.%d.", l%layers))
		x = b.Add(x, b.Linear(x, "w", width))
	}
	b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd")
	p, err := b.Program(64)
	require.NoError(t, err)
	var tensors []ir.Tensor
	for i := range p.Weights {
		typ := quant.F16
		if p.Weights[i].Use == ir.Vector {
			typ = quant.F32
		}
		tensors = append(tensors, ir.Tensor{Name: p.Weights[i].Name, Type: typ, Shape: p.Weights[i].Shape()})
	}
	bound, err := ir.Bind(p, tensors)
	require.NoError(t, err)
	return bound
}

// TestReturned: matrices that rows come back to stay, whatever else is streamed.
func TestReturned(t *testing.T) {
	p := returning(t)
	names := map[string]bool{}
	for r, returned := range p.Returned() {
		if returned {
			names[p.Weights[r].Name] = true
		}
	}
	require.Equal(t, map[string]bool{"blk.0.w.weight": true, "blk.1.w.weight": true}, names)
	a := Ask{Program: p, Budgets: []int64{1}, Sequences: 1}
	_, err := Make([]Ask{a}, Machine{Memory: []int64{gib}})
	require.ErrorContains(t, err, "ask for at least 12M") // of 32
	const least = 12
	for budget := range 15 {
		a.Budgets[0] = int64(least+budget) * mib
		made, err := Make([]Ask{a}, Machine{Memory: []int64{gib}})
		require.NoError(t, err)
		streamed := 0
		for _, h := range made.Models[0].Homes {
			if h.Tier == Disk && h.Group.Use == ir.Matrix {
				streamed++
				require.Greater(t, h.Group.Segment, 2, "the first two layers")
			}
		}
		require.Positive(t, streamed, budget)
	}
}
