package place

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// TestTogether: whatever the programs and the budget, all keep within it, the device takes each layout, nothing streams
// if all of it fits, and what a refusal asks for works.
func TestTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var programs []*ir.Bound
		total := int64(0)
		for range rapid.IntRange(1, 4).Draw(t, "programs") {
			p := drawn(t)
			programs = append(programs, p)
			total += (&Ask{Program: p}).sort(0).total
		}
		budget := rapid.Int64Range(1, total+total/8).Draw(t, "budget")
		models, err := Together(programs, budget)
		if err != nil {
			found := mentioned.FindStringSubmatch(err.Error())
			require.Len(t, found, 2, err)
			n, _ := strconv.ParseInt(found[1], 10, 64)
			require.Greater(t, n*mib, budget, "what was refused is not asked for")
			budget = n * mib
			models, err = Together(programs, budget)
			require.NoError(t, err, "what was asked for")
		}
		takes, streams := int64(0), false
		for i := range models {
			m := &models[i]
			takes += m.Host().Weights
			if streams = streams || m.Streams(); m.Layout.Slots == nil {
				continue
			}
			bound := *programs[i]
			bound.Piece = m.Piece
			m.Layout.MaxRows, m.Layout.KV = 1, backend.KVF16
			m.Layout.Blocks = []int{1}
			checkHomes(t, &bound, m, backend.Traits{Flight: 1, Shares: true, Memory: backend.HostMemory})
		}
		require.LessOrEqual(t, takes, budget)
		if budget >= total {
			require.False(t, streams)
			require.Equal(t, total, takes)
		}
		all, err := Together(programs, 0)
		require.NoError(t, err)
		for i := range all {
			require.False(t, all[i].Streams(), "without a budget all of it stays")
		}
	})
}

// blocks is a program of so many blocks of a matrix each, which has so many values.
func blocks(n, values int) *ir.Bound {
	p := &ir.Bound{Program: &ir.Program{}}
	for l := range n {
		p.Weights = append(p.Weights, ir.Weight{Rows: values >> 10, Cols: 1 << 10, Use: ir.Matrix})
		p.Types = append(p.Types, quant.F32)
		p.Segments = append(p.Segments, ir.Segment{Kind: ir.SegBlock, Layer: l,
			Nodes: []ir.Node{{Op: ir.Linear, In: []ir.Value{0}, Out: 1, W: ir.Ref(l), B: ir.NoRef}}})
	}
	p.Widths = []int{1 << 10, values >> 10}
	return p
}

// TestTogetherDivides: what streams is where it is worth most: programs of few groups stay whole, others get what they
// would stream in proportion.
func TestTogetherDivides(t *testing.T) {
	few, many, more := blocks(3, 1<<25), blocks(20, 1<<25), blocks(40, 1<<25)
	need := func(p *ir.Bound) int64 { return (&Ask{Program: p}).sort(0).total }
	budget := need(few) + (need(many)+need(more))/2
	models, err := Together([]*ir.Bound{few, many, more}, budget)
	require.NoError(t, err)
	require.False(t, models[0].Streams(), "three groups through two slots read three to save one")
	for i, p := range []*ir.Bound{many, more} {
		m := models[i+1]
		require.InDelta(t, 0.5, float64(m.Streamed())/float64(need(p)), 0.1)
		require.Less(t, m.SlotBytes(p), m.Host().Weights)
	}
	fast, slow := Speeds{Disk: 1e9}, Speeds{Disk: 1e8}
	require.InDelta(t, 10, models[1].Seconds(many, &slow, 8)/models[1].Seconds(many, &fast, 8), 0.01, "it waits for the drive")
}
