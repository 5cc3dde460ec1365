package backend

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Parts tracks the segment whose parts a device is given, one by one.
type Parts struct {
	Groups   []ir.Group // of the segments that are computed
	Matrices [][]int    // by segment: its groups of matrices

	segment int    // that is given in parts; -1: none
	named   []bool // by group: in a part so far
}

// NewParts is for a model of p that is compiled for some segments; nil: all.
func NewParts(p *ir.Bound, segments []int) Parts {
	if segments == nil {
		segments = p.All()
	}
	groups := p.On(segments)
	x := Parts{Groups: groups, Matrices: make([][]int, len(p.Segments)), segment: -1, named: make([]bool, len(groups))}
	for g := range groups {
		if groups[g].Use == ir.Matrix {
			x.Matrices[groups[g].Segment] = append(x.Matrices[groups[g].Segment], g)
		}
	}
	return x
}

// Take begins a part, and says whether it is a segment's first. It allocates nothing unless it fails.
func (x *Parts) Take(w *Work) (first bool, err error) {
	if w.Segment < 0 || w.Segment >= len(x.Matrices) {
		return false, fmt.Errorf("part of segment %d of %d", w.Segment, len(x.Matrices))
	}
	if x.segment >= 0 && x.segment != w.Segment {
		return false, fmt.Errorf("part of segment %d: the last one of segment %d has not come", w.Segment, x.segment)
	}
	if len(x.Matrices[w.Segment]) < 2 && !w.Last {
		return false, fmt.Errorf("segment %d has one part, and it is not the last", w.Segment)
	}
	if first = x.segment < 0; first {
		x.segment = w.Segment
		clear(x.named)
	}
	for _, g := range w.Groups {
		switch {
		case g < 0 || g >= len(x.Groups):
			return first, fmt.Errorf("part with group %d of %d", g, len(x.Groups))
		case x.Groups[g].Segment != w.Segment || x.Groups[g].Use != ir.Matrix:
			return first, fmt.Errorf("part with group %d, which is no group of matrices of segment %d", g, w.Segment)
		case x.named[g]:
			return first, fmt.Errorf("part with group %d, which an earlier part of segment %d had", g, w.Segment)
		}
		x.named[g] = true
	}
	return first, nil
}

// Complete ends the segment, and is an error if a needed group was in no part.
func (x *Parts) Complete(needed func(g *ir.Group) bool) error {
	s := x.segment
	x.segment = -1
	for _, g := range x.Matrices[s] {
		if !x.named[g] && needed(&x.Groups[g]) {
			return fmt.Errorf("segment %d ends without its group %d", s, g)
		}
	}
	return nil
}

// Open is an error if a segment is begun and its last part has not come.
func (x *Parts) Open() error {
	if x.segment < 0 {
		return nil
	}
	return fmt.Errorf("the last part of segment %d has not come", x.segment)
}

// Drop forgets a segment whose step is finished.
func (x *Parts) Drop() { x.segment = -1 }
