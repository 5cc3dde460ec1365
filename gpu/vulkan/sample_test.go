//go:build cgo && linux

package vulkan

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/sample"
)

// TestSample compares with the host's sampler, token by token: flat rows and steep ones, equal logits, few that are
// allowed, all ways to cut.
func TestSample(t *testing.T) {
	g := open(t)
	for _, width := range []int{7, 300, 5000} {
		const rows = 64
		rnd := rand.New(rand.NewPCG(uint64(width), 1))
		stride := width + 3
		logits, draws := make([]float32, stride*rows), g.room(kernel.DrawBytes*rows)
		want := make([]uint32, rows)
		host := sample.NewSampler(width)
		for r := range rows {
			row := logits[r*stride:][:width]
			randomLogits(row, rnd)
			p := sample.Defaults()
			p.Seed, p.Temp, p.TopK = rnd.Uint64(), 0.3+2*rnd.Float32(), 1+rnd.IntN([]int{3, 60, kernel.MaxTopK}[r%3])
			p.TopP, p.MinP = []float32{1, 0.95, 0.4, 0}[r%4], []float32{0, 0.05, 0.3, 1}[r/4%4]
			history := make([]int32, rnd.IntN(3000))
			result, err := host.Sample(row, &p, history, sample.State{})
			require.NoError(t, err)
			want[r] = uint32(result.ID)
			d := p.Draw(len(history))
			require.True(t, canDraw(&d), "%+v", d)
			if r == 5 {
				kernel.PutDraw(draws.Bytes[r*kernel.DrawBytes:], nil)
				want[r] = 77777
				continue
			}
			kernel.PutDraw(draws.Bytes[r*kernel.DrawBytes:], &d)
		}
		ids, second := g.room(4*rows), g.room(4*rows)
		view[uint32](ids.Bytes)[5], view[uint32](second.Bytes)[5] = 77777, 77777
		g.run(func(r *vk.Recording) {
			require.NoError(t, g.k.Sample(r, &kernel.Sample{Logits: g.floats(logits).Address, Draws: draws.Address,
				IDs:    ids.Address,
				Second: second.Address, Scratch: g.room(kernel.SampleScratch(rows)).Address, Width: width, Stride: stride,
				Rows: rows}))
		})
		require.Equal(t, want, view[uint32](ids.Bytes), "of %d tokens", width)
		require.Equal(t, want, view[uint32](second.Bytes))
	}
	for _, d := range []backend.Draw{{Host: true, Temp: 1, TopK: 5}, {TopK: 5}, {Temp: 1}, {Temp: 1,
		TopK: kernel.MaxTopK + 1}} {
		require.False(t, canDraw(&d))
	}
}

// randomLogits are a row as a model, or somebody's worst day, may give it.
func randomLogits(row []float32, rnd *rand.Rand) {
	kind, spread := rnd.IntN(4), math.Exp2(rnd.Float64()*6-3)
	for i := range row {
		row[i] = float32(rnd.NormFloat64() * spread)
		switch {
		case kind == 1: // many are equal
			row[i] = float32(math.Round(float64(row[i])))
		case kind == 2 && rnd.IntN(len(row)) > 3: // few are allowed
			row[i] = float32(math.Inf(-1))
		}
	}
	row[rnd.IntN(len(row))] = float32(math.Copysign(0, -1))
	row[rnd.IntN(len(row))] = 0
}

// canDraw says whether Sample draws so: among few tokens. The likeliest token is ArgMax's.
func canDraw(d *backend.Draw) bool {
	return !d.Host && d.Temp > 0 && d.TopK > 0 && d.TopK <= kernel.MaxTopK
}
