package place

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/ftype"
	"github.com/sluice-ai/sluice/stages/model/synth"
)

const gib = 1 << 30

// shaped is a known model's program with the weights of a file of some type.
func shaped(t require.TestingT, name, file string) *ir.Bound {
	config, err := synth.Find(name)
	require.NoError(t, err)
	return boundOf(t, config, file)
}

// boundOf is the same of any shape.
func boundOf(t require.TestingT, config *synth.Config, file string) *ir.Bound {
	recipe, ok := ftype.Find(file)
	require.True(t, ok)
	md := config.Meta("model")
	program, err := arch.Record(md, config.Has, arch.Options{})
	require.NoError(t, err)
	var before []ftype.Tensor
	for _, w := range config.Tensors(program) {
		typ := quant.F16
		if w.Vector {
			typ = quant.F32
		}
		before = append(before, ftype.Tensor{Name: w.Name, Type: typ, Shape: w.Shape})
	}
	types, err := recipe.Types(md, before, ftype.Options{})
	require.NoError(t, err)
	tensors := make([]ir.Tensor, len(before))
	for i, b := range before {
		tensors[i] = ir.Tensor{Name: b.Name, Type: types[i], Shape: b.Shape}
	}
	bound, err := ir.Bind(program, tensors)
	require.NoError(t, err)
	return bound
}

// TestShapes fixes what is planned for models that people have.
func TestShapes(t *testing.T) {
	for _, c := range []struct {
		shape, file string
		weights     float64 // GiB
		want        string
	}{
		{"llama-3.1-8b", "Q8_0", 16, "all resident"},
		{"llama-3.1-8b", "Q8_0", 7.6, "all but the table"},
		{"llama-3.1-8b", "Q8_0", 4, "3.94 GiB, 22 of 73 dense groups (3.83 GiB) by 2 slots"},
		{"llama-3.1-8b", "Q8_0", 0.5, "0.47 GiB, 70 of 73 dense groups (7.30 GiB) by 2 slots"},
		{"llama-3.1-8b", "Q4_K_M", 4, "3.99 GiB, 17 of 71 dense groups (0.38 GiB) by 3 slots"},
		{"qwen3-30b-a3b", "Q4_K_M", 6, "5.99 GiB, 48 layers of 128 experts in 40 to 41 slots"},
		{"qwen3-30b-a3b", "Q4_K_M", 12, "11.99 GiB, 48 layers of 128 experts in 87 to 88 slots"},
		{"qwen3-30b-a3b", "Q4_K_M", 1, "0.99 GiB, 48 of 120 dense groups (0.02 GiB) by 25 slots, " +
			"48 layers of 128 experts in 2 to 2 slots"},
	} {
		t.Run(fmt.Sprintf("%s %s %v", c.shape, c.file, c.weights), func(t *testing.T) {
			p, err := Make([]Ask{{Program: shaped(t, c.shape, c.file), Budgets: []int64{int64(c.weights * gib)}, Sequences: 1}},
				Machine{Memory: []int64{64 * gib}})
			require.NoError(t, err)
			require.Equal(t, c.want, describe(&p.Models[0]))
		})
	}
}

// describe says in a line what is streamed.
func describe(m *Model) string {
	switch {
	case m.Layout.Slots == nil:
		return "all resident"
	case !m.Streams():
		return "all but the table"
	}
	text := fmt.Sprintf("%.2f GiB", float64(m.Host().Weights)/gib)
	if n := len(m.Ring.Groups); n > 0 {
		dense, read := 0, int64(0)
		for _, h := range m.Homes {
			if h.Group.Use == ir.Matrix && h.Group.Expert == ir.Dense {
				dense++
			}
		}
		for _, g := range m.Ring.Groups {
			read += m.Homes[g].Group.Bytes
		}
		text += fmt.Sprintf(", %d of %d dense groups (%.2f GiB) by %d slots", n, dense, float64(read)/gib,
			len(m.Ring.Slots))
	}
	if n := len(m.Shelves); n > 0 {
		first, last := m.Shelves[0], m.Shelves[n-1]
		text += fmt.Sprintf(", %d layers of %d experts in %d to %d slots", n, len(first.Groups), len(last.Slots),
			len(first.Slots))
	}
	return text
}

// drawn is a program of random sizes: an embedding, tied or not, and layers with a mix and an ffn or experts.
func drawn(t *rapid.T) *ir.Bound {
	p := &ir.Bound{Program: &ir.Program{Context: 512, KV: []ir.KVLayer{{KVHeads: 1, KDim: 8, VDim: 8}},
		Classes: []ir.Class{{}}}}
	weight := func(rows, cols, experts int, use ir.Use) ir.Ref {
		p.Weights = append(p.Weights, ir.Weight{Rows: rows, Cols: cols, Experts: experts, Use: use})
		p.Types = append(p.Types, quant.F32)
		return ir.Ref(len(p.Weights) - 1)
	}
	linear := func(r ir.Ref) ir.Node { return ir.Node{Op: ir.Linear, W: r, B: ir.NoRef} }
	open := func(k ir.SegmentKind, layer int, nodes ...ir.Node) {
		p.Segments = append(p.Segments, ir.Segment{Kind: k, Layer: layer, Nodes: nodes})
	}
	size := rapid.IntRange(8, 3000)
	p.Vocab = rapid.IntRange(8, 100_000).Draw(t, "vocab")
	table := weight(p.Vocab, 8, 0, ir.Table)
	open(ir.SegEmbed, -1, ir.Node{Op: ir.Embed, W: table, B: ir.NoRef})
	for l := range rapid.IntRange(0, 12).Draw(t, "layers") {
		norm := ir.Node{Op: ir.Norm, W: weight(1, 64, 0, ir.Vector), B: ir.NoRef}
		open(ir.SegMix, l, norm, linear(weight(size.Draw(t, "mix"), 16, 0, ir.Matrix)))
		if rapid.Bool().Draw(t, "dense") {
			open(ir.SegFFN, l, linear(weight(size.Draw(t, "ffn"), 64, 0, ir.Matrix)))
			continue
		}
		open(ir.SegRoute, l, linear(weight(8, 16, 0, ir.Matrix)))
		n := rapid.IntRange(1, 20).Draw(t, "experts")
		used := rapid.IntRange(1, n).Draw(t, "used")
		e := &ir.ExpertsArgs{Used: used, GateBias: ir.NoRef, UpBias: ir.NoRef, DownBias: ir.NoRef}
		for _, r := range []*ir.Ref{&e.Gate, &e.Up, &e.Down} {
			*r = weight(n*size.Draw(t, "expert"), 16, n, ir.Matrix)
		}
		open(ir.SegExperts, l, ir.Node{Op: ir.Experts, W: ir.NoRef, B: ir.NoRef, Experts: e})
	}
	head := table
	if rapid.Bool().Draw(t, "untied") {
		head = weight(p.Vocab, 8, 0, ir.Matrix)
	}
	open(ir.SegHead, -1, linear(head))
	return p
}

var mentioned = regexp.MustCompile(`ask for at least (\d+)M$`)

// TestTiers: whatever the program and the budget, every group has a home or a place among slots, the budget is kept,
// the device takes the layout, and what a refusal asks for works.
func TestTiers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Ask{Program: drawn(t), Sequences: 1}
		total := a.sort(0).total + a.slabs()
		a.Budgets = []int64{rapid.Int64Range(1, total+total/8).Draw(t, "weights")}
		p, err := Make([]Ask{a}, Machine{Memory: []int64{gib}})
		if err != nil {
			found := mentioned.FindStringSubmatch(err.Error())
			require.Len(t, found, 2, err)
			n, _ := strconv.ParseInt(found[1], 10, 64)
			require.Greater(t, n*mib, a.Budgets[0], "what was refused is not asked for")
			a.Budgets[0] = n * mib
			p, err = Make([]Ask{a}, Machine{Memory: []int64{gib}})
			require.NoError(t, err, "what was asked for")
		}
		m := &p.Models[0]
		require.LessOrEqual(t, m.Host().Weights+a.slabs(), a.Budgets[0])
		require.Equal(t, a.Budgets[0] >= total, !m.Streams() && m.Layout.Slots == nil)
		bound := *a.Program
		bound.Piece = m.Piece
		checkHomes(t, &bound, m, backend.Traits{Flight: 1, Shares: true, Memory: backend.HostMemory})
	})
}

// card is a device whose memory holds matrices in a layout of its own.
var card = backend.Traits{Flight: 2, Shares: true, Memory: backend.OwnMemory,
	Bytes: func(_ *ir.Bound, g *ir.Group) int64 { return (g.Bytes*9/8 + 255) &^ 255 }}

// TestThreeTiers: the same of a device with memory of its own, and of the program's memory, where what the device has
// no room for waits as far as that goes.
func TestThreeTiers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Ask{Program: drawn(t), Sequences: 1, Devices: []backend.Traits{{}, card}}
		total := a.sort(0).total
		a.Budgets = []int64{0, rapid.Int64Range(1, total+total/8).Draw(t, "vram")}
		a.Budgets[0] = rapid.Int64Range(0, total).Draw(t, "ram")
		p, err := Make([]Ask{a}, Machine{Memory: []int64{gib, gib}})
		for range 2 {
			if err == nil {
				break
			}
			found := mentioned.FindStringSubmatch(err.Error())
			require.Len(t, found, 2, err)
			n, _ := strconv.ParseInt(found[1], 10, 64)
			if strings.Contains(err.Error(), "of VRAM") {
				require.Greater(t, n*mib, a.Budgets[1])
				a.Budgets[1] = n * mib
			} else {
				require.Greater(t, n*mib, a.Budgets[0])
				a.Budgets[0] = n * mib
			}
			p, err = Make([]Ask{a}, Machine{Memory: []int64{gib, gib}})
		}
		require.NoError(t, err, "what was asked for")
		m := &p.Models[0]
		require.LessOrEqual(t, m.Beyond().Weights, a.Budgets[1])
		require.Equal(t, a.Budgets[1] >= total, m.Layout.Slots == nil)
		if a.Budgets[0] > 0 && m.Layout.Slots != nil {
			require.LessOrEqual(t, m.Host().Weights+a.slabs(), a.Budgets[0])
		}
		bound := *a.Program
		bound.Piece = m.Piece
		checkHomes(t, &bound, m, card)
		kept, host := []int(nil), int64(0)
		for g := range m.Homes {
			h := &m.Homes[g]
			if h.Tier == Host {
				host += card.RoomFor(&bound, &h.Group, false)
				require.Equal(t, h.Group.Use != ir.Table, h.Kept())
			}
			if h.Kept() {
				kept = append(kept, g)
			}
			require.True(t, a.Budgets[0] > 0 || h.Tier != Disk, "there is room in memory")
		}
		require.Equal(t, m.Layout.Kept, kept)
		require.Equal(t, m.Host().Weights, host)
	})
}

// checkHomes compares homes, slots, ring and shelves with each other and with the program.
func checkHomes(t *rapid.T, p *ir.Bound, m *Model, traits backend.Traits) {
	groups := p.On(p.All())
	require.Len(t, m.Homes, len(groups))
	layout := m.Layout
	tables := make([][]byte, len(p.Weights))
	tables[0] = make([]byte, p.Size(0))
	layout.Weights = backend.Uploaded{Tables: tables}
	require.NoError(t, layout.Check(p, traits), "the device takes it")
	shared, bytes := map[int]bool{}, int64(0)
	share := func(slots, among []int, least int) {
		require.GreaterOrEqual(t, len(slots), least)
		require.Greater(t, len(among), len(slots), "slots for all are homes")
		size := int64(0)
		for _, g := range among {
			require.False(t, shared[g], "once")
			shared[g] = true
			size = max(size, traits.RoomFor(p, &groups[g], true))
		}
		for _, s := range slots {
			require.Equal(t, among, layout.Slots[s])
			bytes += size
		}
	}
	if len(m.Ring.Groups) > 0 {
		share(m.Ring.Slots, m.Ring.Groups, leastRing)
		require.IsIncreasing(t, m.Ring.Groups)
	}
	for _, s := range m.Shelves {
		share(s.Slots, s.Groups, leastShelf)
		for e, g := range s.Groups {
			require.Equal(t, []int{s.Segment, e}, []int{groups[g].Segment, groups[g].Expert})
		}
		require.Positive(t, s.Used)
	}
	for g, h := range m.Homes {
		require.Equal(t, groups[g], h.Group)
		switch {
		case h.Tier == Device:
			require.False(t, shared[g])
			bytes += traits.RoomFor(p, &h.Group, false)
			if layout.Slots != nil {
				require.Equal(t, []int{g}, layout.Slots[h.Slot])
			}
		case h.Group.Use == ir.Table:
			require.Negative(t, h.Slot)
		default:
			require.NotEqual(t, Device, h.Tier)
			require.True(t, h.Tier == Disk || traits.Memory == backend.OwnMemory)
			require.Negative(t, h.Slot)
			require.True(t, shared[g], "group %d is nowhere", g)
			require.Equal(t, ir.Matrix, h.Group.Use)
		}
	}
	require.Equal(t, m.Takes[m.Devices[0]].Weights, bytes)
}

// TestFit: models share what memory there is for weights by their sizes, if they do not all fit.
func TestFit(t *testing.T) {
	large, small := shaped(t, "llama-3.1-8b", "Q8_0"), shaped(t, "llama-3.1-8b", "Q4_K_M")
	asks := []Ask{{Program: large}, {Program: small}}
	Fit(asks, Machine{Memory: []int64{64 * gib}})
	require.Zero(t, asks[0].budget(0))
	require.Zero(t, asks[1].budget(0))
	Fit(asks, Machine{Memory: []int64{10 * gib}})
	require.InDelta(t, 6.5*gib, asks[0].budget(0)+asks[1].budget(0), 10)
	require.Greater(t, asks[0].budget(0), asks[1].budget(0)*3/2)
	asks = []Ask{{Program: large, Budgets: []int64{4 * gib}}, {Program: small}, {Program: large, InPlace: true}}
	Fit(asks, Machine{Memory: []int64{10 * gib}})
	require.EqualValues(t, 4*gib, asks[0].budget(0), "as asked for")
	require.InDelta(t, 2.5*gib, asks[1].budget(0), 10)
	require.Zero(t, asks[2].budget(0))
}

// TestLeast: a MiB less than what a refusal asks for is refused. It is small, because a head moves in pieces.
func TestLeast(t *testing.T) {
	a := Ask{Program: shaped(t, "llama-3.1-8b", "Q8_0"), Budgets: []int64{1}, Sequences: 1}
	_, err := Make([]Ask{a}, Machine{Memory: []int64{gib}})
	require.EqualError(t, err, "0.0 MiB for weights are too few: what always stays, slabs and the slots that weights "+
		"stream through need 371 MiB: ask for at least 371M")
	a.Budgets[0] = 370 * mib
	_, err = Make([]Ask{a}, Machine{Memory: []int64{gib}})
	require.ErrorContains(t, err, "370.0 MiB for weights are too few")
	a.Budgets[0] = 371 * mib
	_, err = Make([]Ask{a}, Machine{Memory: []int64{gib}})
	require.NoError(t, err)
}

// TestMoreIsBetter: what a larger budget pins never costs more.
func TestMoreIsBetter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Ask{Program: drawn(t)}
		s := a.sort(leastPiece)
		less := s.least() + rapid.Int64Range(0, s.total).Draw(t, "less")
		more := less + rapid.Int64Range(0, s.total).Draw(t, "more")
		require.LessOrEqual(t, s.pin(more).cost, s.pin(less).cost)
		require.Nil(t, s.pin(s.least()-1))
	})
}
