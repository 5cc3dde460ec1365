package backend

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// tied is an embedding that is multiplied, too, in two pieces, after a network of one group.
func tied() *ir.Bound {
	p := &ir.Program{
		Weights:  []ir.Weight{{Name: "table", Rows: 128, Cols: 2}, {Name: "up", Rows: 3, Cols: 5}, {Name: "norm", Rows: 1, Cols: 2}},
		Segments: []ir.Segment{{Kind: ir.SegEmbed}, {Kind: ir.SegFFN}, {Kind: ir.SegHead}},
		Classes:  make([]ir.Class, 2),
	}
	p.Segments[0].Nodes = []ir.Node{{Op: ir.Embed, W: 0, B: ir.NoRef}}
	p.Segments[1].Nodes = []ir.Node{{Op: ir.Linear, W: 1, B: ir.NoRef}}
	p.Segments[2].Nodes = []ir.Node{{Op: ir.Norm, W: 2, B: ir.NoRef}, {Op: ir.Linear, W: 0, B: ir.NoRef}}
	return &ir.Bound{Program: p, Types: []quant.Type{quant.F32, quant.F32, quant.F32}, Piece: 64 * 8}
}

// Groups of tied.
const (
	norm, up, upper, lower = 0, 1, 2, 3
)

func TestSlotsCheck(t *testing.T) {
	p, traits := tied(), Traits{Flight: 1, Shares: true, Memory: HostMemory}
	require.Len(t, p.On(p.All()), 4)
	table := [][]byte{make([]byte, 128*8)}
	check := func(slots [][]int, tables [][]byte, segments ...int) error {
		return (&Config{Limits: Limits{KV: KVF32, Blocks: []int{1, 1}, MaxRows: 1},
			Layout: Layout{Slots: slots, Segments: segments}, Weights: Uploaded{Tables: tables}}).
			Check(p, traits)
	}
	require.NoError(t, check([][]int{{norm}, {up}, {upper}, {lower}}, nil))
	require.NoError(t, check([][]int{{norm}, {up, upper, lower}, {lower, up}}, table))
	require.NoError(t, check([][]int{{norm}, {up, upper}, {lower}}, table))
	require.NoError(t, check([][]int{{norm}, {up, upper, lower}}, append(table, nil, nil)))
	require.NoError(t, check([][]int{{0}, {1, 2}}, nil, 2), "without the embedding, no table is read")
	require.NoError(t, check([][]int{}, table, 0), "one that nobody multiplies needs no slot")
	require.NoError(t, check([][]int{{0}}, nil, 0))
	alone := Config{Limits: Limits{KV: KVF32, Blocks: []int{1, 1}, MaxRows: 1},
		Layout: Layout{Slots: [][]int{}, Segments: []int{0}}, Weights: Uploaded{Tables: table}}
	require.EqualError(t, alone.Check(p, Traits{Flight: 1, Memory: HostMemory}), "no slot is for group 0")
	for _, bad := range []struct {
		slots  [][]int
		tables [][]byte
		want   string
	}{
		{[][]int{{norm, up}, {upper}, {lower}}, table, "group 0 shares slots: only matrices can"},
		{[][]int{{up}, {upper}, {lower}}, table, "no slot is for group 0"},
		{[][]int{{norm}, {up}, {up}, {upper}, {lower}}, table, "group 1 has 2 slots of its own among 2: want one, or none"},
		{[][]int{{norm}, {up}, {up, upper, lower}}, table, "group 1 has 1 slots of its own among 2: want one, or none"},
		{[][]int{{norm}, {up}, {upper}}, table, "no slot is for group 3"},
		{[][]int{{norm}, {up}, {upper}, {-1}}, table, "slot 3 is for group -1 of 4"},
		{[][]int{{norm}, {up}, {upper}, {4}}, table, "slot 3 is for group 4 of 4"},
		{[][]int{{norm}, {up, upper}, {lower}}, nil, "table is in no slot of its own: want its 1024 bytes in Tables"},
		{[][]int{{norm}, {up, lower}, {upper}}, [][]byte{make([]byte, 1023)},
			"table is in no slot of its own: want its 1024 bytes in Tables"},
	} {
		require.EqualError(t, check(bad.slots, bad.tables), bad.want)
	}
	require.EqualError(t, check([][]int{}, nil, 0), "table is in no slot of its own: want its 1024 bytes in Tables")
	c := Config{Limits: Limits{KV: KVF32, Blocks: []int{1, 1}, MaxRows: 1}, Layout: Layout{Slots: [][]int{}},
		Weights: InPlace(table)}
	require.EqualError(t, c.Check(p, traits), "weights in place: they have no use for slots")
}

// TestKept: only what shares slots can be kept, and only where the program's memory is not the device's.
func TestKept(t *testing.T) {
	p := threeGroups()
	traits := Traits{Flight: 1, Shares: true, Memory: OwnMemory}
	c := Config{Limits: Limits{KV: KVF32, Blocks: []int{1, 1}, MaxRows: 1},
		Layout: Layout{Slots: [][]int{{0}, {1, 2}}, Kept: []int{1, 2}}}
	require.NoError(t, c.Check(p, traits))
	for _, kept := range [][]int{{0}, {2, 1}, {1, 1}, {-1}, {3}} {
		c.Kept = kept
		require.ErrorContains(t, c.Check(p, traits), "are kept: want ascending ones that share slots, of 3", "%v", kept)
	}
	c.Kept = []int{1}
	const why = "groups are kept in the program's memory: they share no slots, or the device computes there"
	require.EqualError(t, c.Check(p, Traits{Flight: 1, Shares: true, Memory: HostMemory}), why)
	c.Slots = nil
	require.EqualError(t, c.Check(p, traits), why)
}

func TestOwn(t *testing.T) {
	require.Equal(t, []bool{true, true}, (&Config{}).Own(2))
	require.Equal(t, []bool{false, true, false}, (&Config{Layout: Layout{Slots: [][]int{{0, 2}, {1}, {2, 0}}}}).Own(3))
}

// TestExtentBytes: the sectors that hold some bytes of a file fit, wherever these begin, and no sector is to spare.
func TestExtentBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 1<<40).Draw(t, "bytes")
		sectors := func(from int64) int64 {
			return ((from+n+Sector-1)/Sector - from/Sector) * Sector
		}
		require.LessOrEqual(t, sectors(rapid.Int64Range(0, 1<<40).Draw(t, "from")), ExtentBytes(n))
		require.Equal(t, ExtentBytes(n), sectors(Sector-1))
	})
}

func TestSlotBytes(t *testing.T) {
	p := tied()
	p.Weights[1].Rows = 2 * Sector
	p.Segments[1].Nodes = append(p.Segments[1].Nodes, ir.Node{Op: ir.Linear, W: 2, B: ir.NoRef})
	p.Segments[2].Nodes = p.Segments[2].Nodes[1:]
	groups := p.On(p.All())
	require.Equal(t, []ir.Ref{1, 2}, groups[0].Weights)
	require.EqualValues(t, (2*4*5+1+2)*Sector, SlotBytes(p, &groups[0]))
	require.EqualValues(t, Sector, ExtentBytes(1))
	require.EqualValues(t, 2*Sector, ExtentBytes(2))
	require.EqualValues(t, ExtentBytes(64*8), SlotBytes(p, &groups[1]))
}

// TestParts: each group once, of one segment at a time, and none too few.
func TestParts(t *testing.T) {
	x := NewParts(tied(), nil)
	require.Equal(t, [][]int{nil, {up}, {upper, lower}}, x.Matrices)
	all := func(*ir.Group) bool { return true }
	first, err := x.Take(&Work{Segment: 1, Groups: []int{up}, Last: true})
	require.NoError(t, err)
	require.True(t, first)
	require.NoError(t, x.Complete(all))

	first, err = x.Take(&Work{Segment: 2, Groups: []int{lower}})
	require.NoError(t, err)
	require.True(t, first)
	require.EqualError(t, x.Open(), "the last part of segment 2 has not come")
	first, err = x.Take(&Work{Segment: 2, Groups: []int{upper}, Last: true})
	require.NoError(t, err)
	require.False(t, first)
	require.NoError(t, x.Complete(all))
	require.NoError(t, x.Open())

	_, err = x.Take(&Work{Segment: 2, Groups: []int{lower}})
	require.NoError(t, err, "it is another step's")
	require.EqualError(t, x.Complete(all), "segment 2 ends without its group 2")
	_, err = x.Take(&Work{Segment: 2, Last: true})
	require.NoError(t, err)
	require.NoError(t, x.Complete(func(*ir.Group) bool { return false }), "none is needed")

	_, err = x.Take(&Work{Segment: 2, Groups: []int{lower}})
	require.NoError(t, err)
	for _, bad := range []struct {
		w    Work
		want string
	}{
		{Work{Segment: -1}, "part of segment -1 of 3"},
		{Work{Segment: 3}, "part of segment 3 of 3"},
		{Work{Segment: 1, Last: true}, "part of segment 1: the last one of segment 2 has not come"},
		{Work{Segment: 1}, "part of segment 1: the last one of segment 2 has not come"},
		{Work{Segment: 2, Groups: []int{lower}}, "part with group 3, which an earlier part of segment 2 had"},
		{Work{Segment: 2, Groups: []int{up}}, "part with group 1, which is no group of matrices of segment 2"},
		{Work{Segment: 2, Groups: []int{norm}}, "part with group 0, which is no group of matrices of segment 2"},
		{Work{Segment: 2, Groups: []int{4}}, "part with group 4 of 4"},
		{Work{Segment: 2, Groups: []int{-1}}, "part with group -1 of 4"},
	} {
		_, err := x.Take(&bad.w)
		require.EqualError(t, err, bad.want)
	}
	x.Drop()
	require.NoError(t, x.Open())
	_, err = x.Take(&Work{Segment: 1, Groups: []int{up}})
	require.EqualError(t, err, "segment 1 has one part, and it is not the last")
	first, err = x.Take(&Work{Segment: 2, Groups: []int{lower}})
	require.NoError(t, err)
	require.True(t, first)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		x.Drop()
		_, _ = x.Take(&Work{Segment: 2, Groups: []int{lower}})
	}))
}
