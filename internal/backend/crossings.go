package backend

import (
	"slices"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Crossing is a value that goes from the device of one segment to the device of another.
type Crossing struct {
	Value ir.Value
	From  int // the segment that writes it; below 0: none, it is an input of rows
	To    int // the first segment of the other device that reads it
}

// Crossings lists the values that cross between devices, given the device of each segment: each value once for every
// device that takes it, in the order in which they are taken. Inputs of rows come to every device that takes them.
func Crossings(p *ir.Bound, devices []int) (all []Crossing) {
	type visit struct {
		value  ir.Value
		device int
	}
	writers, there := slices.Repeat([]int{-1}, len(p.Widths)), map[visit]bool{}
	for s := range p.Segments {
		for _, v := range p.Only([]int{s}).Taken() {
			at := visit{v, devices[s]}
			from := writers[v]
			if (from < 0 || devices[from] != at.device) && !there[at] {
				there[at] = true
				all = append(all, Crossing{v, from, s})
			}
		}
		for i := range p.Segments[s].Nodes {
			writers[p.Segments[s].Nodes[i].Out] = s
		}
	}
	return all
}

// Torn finds a segment that attends to a cache which another device fills, given the device of each segment; a segment
// whose device is below 0 is not computed.
func Torn(p *ir.Program, devices []int) (segment int, torn bool) {
	filled := make([]int, len(p.KV)) // by cache: where
	for c := range filled {
		filled[c] = -1
	}
	for s := range p.Segments {
		if devices[s] < 0 {
			continue
		}
		for i := range p.Segments[s].Nodes {
			n := &p.Segments[s].Nodes[i]
			switch {
			case n.Op != ir.Attend:
			case len(n.In) > 1:
				filled[n.Attend.KV] = devices[s]
			case filled[n.Attend.KV] != devices[s]:
				return s, true
			}
		}
	}
	return 0, false
}
