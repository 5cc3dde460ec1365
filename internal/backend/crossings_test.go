package backend

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/ir"
)

// chain is a program of segments that each add to what they take: value i is written by segment i.
func chain(takes ...[]ir.Value) *ir.Bound {
	p := &ir.Program{Widths: make([]int, len(takes))}
	for s, in := range takes {
		p.Segments = append(p.Segments, ir.Segment{Nodes: []ir.Node{{Op: ir.Add, In: in, Out: ir.Value(s), W: ir.NoRef,
			B: ir.NoRef}}})
	}
	return &ir.Bound{Program: p}
}

// TestCrossings: a value crosses once to every device that takes it, and not to the one that has it.
func TestCrossings(t *testing.T) {
	in := ir.Value(5) // no segment writes it
	p := chain(nil, []ir.Value{0}, []ir.Value{0, 1}, []ir.Value{0, 2}, []ir.Value{0, 3})
	require.Empty(t, Crossings(p, []int{3, 3, 3, 3, 3}))
	rows := chain([]ir.Value{in}, []ir.Value{0, in}, []ir.Value{1, in})
	rows.Widths = make([]int, in+1)
	require.Equal(t, []Crossing{{in, -1, 0}, {0, 0, 1}, {in, -1, 1}}, Crossings(rows, []int{1, 0, 0}))
	require.Equal(t, []Crossing{{0, 0, 1}, {0, 0, 2}, {1, 1, 2}, {2, 2, 3}, {3, 3, 4}},
		Crossings(p, []int{0, 1, 2, 1, 0}))
}

// TestTorn: segments that attend to one cache are to be on one device; what computes nothing is nobody's.
func TestTorn(t *testing.T) {
	attend := func(cache int, in ...ir.Value) ir.Segment {
		return ir.Segment{Nodes: []ir.Node{{Op: ir.Attend, In: in, Attend: &ir.AttendArgs{KV: cache}}}}
	}
	p := &ir.Program{KV: make([]ir.KVLayer, 2), Segments: []ir.Segment{attend(0, 0, 1, 2), attend(1, 0, 1, 2),
		attend(0, 0)}}
	for _, whole := range [][]int{{0, 0, 0}, {1, 0, 1}, {-1, 2, -1}} {
		_, torn := Torn(p, whole)
		require.False(t, torn, whole)
	}
	for _, apart := range [][]int{{0, 0, 1}, {-1, 0, 0}} {
		s, torn := Torn(p, apart)
		require.True(t, torn, apart)
		require.Equal(t, 2, s)
	}
}

// TestDevicesOfLayouts: what deals segments to devices that are not there is refused.
func TestDevicesOfLayouts(t *testing.T) {
	p := chain(nil, []ir.Value{0})
	traits := Traits{Flight: 1, Memory: HostMemory, Devices: make([]Traits, 2)}
	for text, l := range map[string]Layout{
		"segment 1 is for device 2 of 2":                                 {Devices: []int{0, 2}},
		"segment 0 is for device -1 of 2":                                {Devices: []int{-1, 0}},
		"devices for 1 segments: want them for all 2 of a whole program": {Devices: []int{0}},
	} {
		require.EqualError(t, l.checkDevices(p, traits), text)
	}
	require.Error(t, (&Layout{Segments: []int{0, 1}, Devices: []int{0, 1}}).checkDevices(p, traits), "of some segments")
	require.NoError(t, (&Layout{Devices: []int{0, 1}}).checkDevices(p, traits))
}
