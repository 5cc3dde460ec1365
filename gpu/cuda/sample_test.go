//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
)

// steep are logits as a model, or somebody's worst day, may give them.
func steep(row []float32, random *rand.Rand) {
	kind, spread := random.IntN(4), math.Exp2(random.Float64()*6-3)
	for i := range row {
		row[i] = float32(random.NormFloat64() * spread)
		switch {
		case kind == 1: // many are equal
			row[i] = float32(math.Round(float64(row[i])))
		case kind == 2 && random.IntN(len(row)) > 3: // few are allowed
			row[i] = float32(math.Inf(-1))
		}
	}
	row[random.IntN(len(row))] = float32(math.Copysign(0, -1))
	row[random.IntN(len(row))] = 0
}

// TestSample draws what gpu/null draws: from flat rows and steep ones, from equal logits, among few that are allowed,
// with all ways to cut. A row that is not drawn keeps what is there.
func TestSample(t *testing.T) {
	c := open(t)
	for _, width := range []int{7, 300, 5000} {
		rows, stride := 24, width+3
		if testing.Short() {
			rows = 12
		}
		random := rand.New(rand.NewPCG(uint64(width), 1))
		logits, draws := make([]float32, stride*rows), make([]byte, kernel.DrawBytes*rows)
		for r := range rows {
			steep(logits[r*stride:][:width], random)
			d := &backend.Draw{Seed: random.Uint64(), Position: random.Uint64N(3000), Temp: 0.3 + 2*random.Float32(),
				TopK: 1 + random.Int32N([]int32{3, 60, kernel.MaxTopK}[r%3]), TopP: []float32{1, 0.95, 0.4, 0}[r%4],
				MinP: []float32{0, 0.05, 0.3, 1}[r/4%4]}
			if r == 5 {
				d = nil
			}
			kernel.PutDraw(draws[r*kernel.DrawBytes:], d)
		}
		ours, plain := c.both(func(m *maker) kernel.Launch {
			b := m.room(len(draws))
			copy(b.Bytes, draws)
			return &kernel.Sample{Logits: m.floats(logits), Draws: b.Address, IDs: m.result(4 * rows),
				Second: m.result(4 * rows), Scratch: m.room(int(kernel.SampleScratch(rows))).Address,
				Width: width, Stride: stride, Rows: rows}
		})
		for i := range plain {
			require.Equal(t, view[uint32](plain[i]), view[uint32](ours[i]), "of %d tokens", width)
		}
	}
}

// TestArgMax: of equal values the first, and never NaN.
func TestArgMax(t *testing.T) {
	c := open(t)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, width := range []int{1, 5, 64, 1000, 50000} {
		x := append(some(1, width, 1), make([]float32, width)...)
		x = append(append(x, some(2, width, 1)...), some(3, width, 1)...)
		x[2*width+width/2], x[3*width-1], x[3*width] = inf, inf, nan
		ours, plain := c.both(func(m *maker) kernel.Launch {
			return &kernel.ArgMax{X: m.floats(x), IDs: m.result(16), Second: m.result(16),
				Scratch: m.room(int(kernel.ArgMaxScratch(4))).Address, Width: width, Stride: width, Rows: 4}
		})
		for i := range plain {
			require.Equal(t, view[uint32](plain[i]), view[uint32](ours[i]), "of %d values", width)
		}
	}
}
