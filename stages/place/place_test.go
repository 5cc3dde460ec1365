package place

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

const mib = 1 << 20

// program has one layer with 2 heads of 64, 32 KiB of KV a block in f16, and two groups of weights.
func program() *ir.Bound {
	return &ir.Bound{
		Program: &ir.Program{
			Context: 4096, Vocab: 1000, KV: []ir.KVLayer{{KVHeads: 2, KDim: 64, VDim: 64}}, Classes: []ir.Class{{}},
			Weights: []ir.Weight{{Rows: 1000, Cols: 64}, {Rows: 64, Cols: 64}},
			Segments: []ir.Segment{
				{Nodes: []ir.Node{{Op: ir.Linear, W: 0, B: ir.NoRef}}}, {Nodes: []ir.Node{{Op: ir.Linear, W: 1, B: ir.NoRef}}},
			},
		},
		Types: []quant.Type{quant.F32, quant.F32},
	}
}

func ask(edit func(*Ask)) Ask {
	a := Ask{Program: program()}
	if edit != nil {
		edit(&a)
	}
	return a
}

func TestCache(t *testing.T) {
	tests := []struct {
		name        string
		ask         Ask
		available   int64
		ctx, blocks int
		err         string
	}{
		{name: "one sequence gets the trained context", ask: Ask{Sequences: 1}, available: 1024 * mib, ctx: 4096, blocks: 64},
		{name: "several get room for four", ask: Ask{Sequences: 8}, available: 1024 * mib, ctx: 4096, blocks: 256},
		{name: "little memory, a shorter context", ask: Ask{Sequences: 8}, available: 4 * mib, ctx: 2048, blocks: 32},
		{name: "hardly any memory, but it runs", ask: Ask{Sequences: 1}, available: mib / 2, ctx: 512, blocks: 8},
		{name: "what is asked for may take all", ask: Ask{Sequences: 1, Context: 8000}, available: 4 * mib, ctx: 8000,
			blocks: 125},
		{name: "and no more", ask: Ask{Sequences: 1, Context: 100_000}, available: 4 * mib,
			err: "a context of 100000 tokens needs a KV cache of 48 MiB with what else was asked for, 4 MiB are available: " +
				"ask for a context of at most 8192 tokens"},
		{name: "blocks count too", ask: Ask{Sequences: 1, Context: 640, Blocks: 1000}, available: 4 * mib,
			err: "a context of 640 tokens needs a KV cache of 31 MiB with what else was asked for, 4 MiB are available: " +
				"ask for a context of at most 64 tokens"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.ask.Program = program()
			p, err := Make([]Ask{test.ask}, Machine{Memory: []int64{test.available}})
			if test.err != "" {
				require.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			m := p.Models[0]
			require.Equal(t, test.ctx, m.Context)
			require.Equal(t, []int{test.blocks}, m.Layout.Blocks)
			require.Equal(t, int64(test.blocks)*32<<10, m.Host().KV)
		})
	}
}

// Several models share the memory: by default each gets as much of a quarter, and what was asked for comes out of the
// whole in order.
func TestSeveral(t *testing.T) {
	p, err := Make([]Ask{ask(nil), ask(nil)}, Machine{Memory: []int64{64 * mib}})
	require.NoError(t, err)
	for _, m := range p.Models {
		require.Equal(t, int64(8*mib), m.Host().KV, "half a quarter")
	}
	big := func(a *Ask) { a.Context = 4096 * 20; a.Sequences = 1 } // 40 MiB
	_, err = Make([]Ask{ask(big), ask(big)}, Machine{Memory: []int64{64 * mib}})
	require.ErrorContains(t, err, "needs a KV cache of 40 MiB with what else was asked for, 24 MiB are available")
}

func TestHomes(t *testing.T) {
	p, err := Make([]Ask{ask(nil)}, Machine{Memory: []int64{64 * mib}})
	require.NoError(t, err)
	m := p.Models[0]
	require.Len(t, m.Homes, 2)
	for g, h := range m.Homes {
		require.Equal(t, Home{Group: program().On([]int{0, 1})[g], Tier: Device, Slot: g}, h)
	}
	require.Equal(t, "device", m.Homes[0].Tier.String())

	p, err = Make([]Ask{ask(func(a *Ask) { a.InPlace = true })}, Machine{Memory: []int64{64 * mib}})
	require.NoError(t, err)
	require.Equal(t, Disk, p.Models[0].Homes[1].Tier)
	require.Zero(t, p.Slab, "nothing travels")
}

// A slab holds whole rows of every weight of every model, and no more than is worth while.
func TestSlab(t *testing.T) {
	small := ask(nil)
	wide := ask(func(a *Ask) { a.Program.Weights[1].Cols = 17_500 }) // rows of 70 kB
	large := ask(func(a *Ask) { a.Program.Weights[0].Rows = 1 << 30 })
	for _, c := range []struct {
		asks []Ask
		want int
	}{
		{[]Ask{small}, leastSlab},
		{[]Ask{large}, fullSlab},
		{[]Ask{wide}, 70_000 * slabRows},
		{[]Ask{large, wide, small}, 70_000 * slabRows},
	} {
		p, err := Make(c.asks, Machine{Memory: []int64{64 * mib}})
		require.NoError(t, err)
		require.Equal(t, c.want, p.Slab)
	}
}

func TestSteps(t *testing.T) {
	p, err := Make([]Ask{ask(func(a *Ask) { a.Sequences, a.Rows = 4, 100 })}, Machine{Memory: []int64{64 * mib}})
	require.NoError(t, err)
	m := p.Models[0]
	require.Equal(t, []int{4, 100, 100, 25}, []int{m.Sequences, m.Rows, m.Wanted, m.Beside})
	p, err = Make([]Ask{ask(func(a *Ask) { a.Program.Vocab = 1 << 20 })}, Machine{Memory: []int64{64 * mib}})
	require.NoError(t, err)
	m = p.Models[0]
	require.Equal(t, []int{32, 512, 32, 128}, []int{m.Sequences, m.Rows, m.Wanted, m.Beside}, "logits of 64 MiB are enough")
	p, err = Make([]Ask{ask(func(a *Ask) { a.Devices = []backend.Traits{{}, card} })},
		Machine{Memory: []int64{64 * mib, 64 * mib}})
	require.NoError(t, err)
	require.Equal(t, 512, p.Models[0].Beside, "a card is busy with whole steps only")
	p, err = Make([]Ask{ask(func(a *Ask) {
		team := card
		team.Abreast = 3
		a.Devices = []backend.Traits{{}, team}
	})}, Machine{Memory: []int64{64 * mib, 64 * mib}})
	require.NoError(t, err)
	require.Equal(t, 3*512, p.Models[0].Rows, "cards that share each row take more of them")
}

// Memory for blocks that a cache has no room for is divided between its classes as the cache is, and is taken whole
// blocks at a time.
func TestSpilled(t *testing.T) {
	const each = 32 << 10 // of a block of a layer
	windowed := func(a *Ask) {
		a.Program.KV = append(a.Program.KV, ir.KVLayer{KVHeads: 2, KDim: 64, VDim: 64, Class: 1})
		a.Program.Classes = append(a.Program.Classes, ir.Class{Window: 64})
		a.Context, a.Sequences, a.Blocks, a.Rows = 6400, 1, 100, 64
	}
	p, err := Make([]Ask{ask(windowed), ask(func(a *Ask) { windowed(a); a.KVHost = 500*each + 5 })},
		Machine{Memory: []int64{1 << 30}})
	require.NoError(t, err)
	require.Equal(t, []int{0, 0}, p.Models[0].Spilled)
	require.Zero(t, p.Models[0].Host().Spilled)
	m := &p.Models[1]
	windows := m.Layout.Blocks[1]
	require.Less(t, windows, 100)
	require.Equal(t, []int{500 * 100 / (100 + windows), 500 * windows / (100 + windows)}, m.Spilled)
	require.EqualValues(t, (m.Spilled[0]+m.Spilled[1])*each, m.Host().Spilled)
	require.Equal(t, p.Models[0].Host().Bytes()+m.Host().Spilled, m.Host().Bytes())
}
