package place

import (
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// arithmetic adds to each device's step what rows of a prompt compute beside products with weights, where so many
// positions come before them.
func (m *Model) arithmetic(p *ir.Bound, steps []*step, rows, positions float64) {
	for i := range p.Segments {
		s := &p.Segments[i]
		if s.Kind == ir.SegHead {
			continue // of a prompt one row is wanted
		}
		x := steps[m.Devices[i]]
		for j := range s.Nodes {
			x.node(p, &s.Nodes[j], rows, positions)
		}
	}
}

// node adds the arithmetic of one node.
func (x *step) node(p *ir.Bound, n *ir.Node, rows, positions float64) {
	c := p.CostOf(n)
	x.values += rows * (float64(p.Widths[n.Out]) + c.Values)
	x.attend += 2 * rows * c.Scanned
	if a := n.Attend; a != nil {
		seen := rows * sees(a, rows, positions)
		x.values += seen * c.Looks
		x.attend += 2 * seen * c.Seen
	}
}

// sees is how many positions attention computes with for a row, in the mean, where so many come before the rows.
// Each row also computes with those positions of its last block that only rows beside it see.
func sees(a *ir.AttendArgs, rows, positions float64) float64 {
	switch all := positions + (rows+backend.BlockSize)/2; {
	case a.Reach > 0:
		return min(rows, float64(2*a.Reach+1))
	case a.Both:
		return rows
	case a.Window == 0:
		return all
	case a.Chunked:
		return min(all, float64(a.Window)/2)
	default:
		return min(all, float64(a.Window))
	}
}
