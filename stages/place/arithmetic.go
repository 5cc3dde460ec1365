package place

import (
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// arithmetic counts what rows of a prompt compute beside products with weights, behind so many positions, by device.
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

// node counts one. Of a product with weights its input is turned into bytes, and its output is written. Each position
// that a head sees has a weight. A scan's state decays, takes in a row and is read: three multiplications and additions
// for each of its values.
func (x *step) node(p *ir.Bound, n *ir.Node, rows, positions float64) {
	x.values += rows * float64(p.Widths[n.Out])
	switch n.Op {
	case ir.Linear, ir.HeadLinear:
		x.values += rows * float64(p.Widths[n.In[0]])
	case ir.Experts:
		ffn := p.Weights[n.Experts.Down].Cols
		x.values += rows * float64(n.Experts.Used) * float64(p.Widths[n.In[0]]+4*ffn+p.Widths[n.Out])
	case ir.Attend:
		a := n.Attend
		seen := rows * float64(a.Heads) * sees(a, rows, positions)
		x.values += seen
		x.attend += 2 * seen * float64(a.KDim+a.VDim)
	case ir.SSMScan, ir.DeltaRule:
		x.attend += 2 * 3 * rows * float64(n.Scan.Heads*n.Scan.KDim*n.Scan.VDim)
	}
}

// sees is how many positions are computed with for a row behind others, in the mean. What rows side by side see of the
// last block, each of them computes with.
func sees(a *ir.AttendArgs, rows, positions float64) float64 {
	switch all := positions + (rows+backend.BlockSize)/2; {
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
