package ir

import "fmt"

func fitsHeadLinear(p *Program, n *Node) error {
	w, in, out := &p.Weights[n.W], p.Widths[n.In[0]], p.Widths[n.Out]
	if n.Heads <= 0 || w.Heads != n.Heads || w.Rows != out || w.Rows%n.Heads != 0 || w.Cols*n.Heads != in {
		return fmt.Errorf("%s is %d×%d of %d heads, want %d×%d of %d", w.Name, w.Rows, w.Cols, w.Heads, out,
			in/max(n.Heads, 1), n.Heads)
	}
	return nil
}

func fitsHeadSlice(p *Program, n *Node) error {
	in, out := p.Widths[n.In[0]], p.Widths[n.Out]
	if n.Heads <= 0 || in%n.Heads != 0 || out%n.Heads != 0 || n.From < 0 || n.From > (in-out)/n.Heads {
		return fmt.Errorf("%d features from %d on of each of %d heads of %d in all", out/max(n.Heads, 1), n.From, n.Heads, in)
	}
	return nil
}

func fitsHeadJoin(p *Program, n *Node) error {
	x, y, out := p.Widths[n.In[0]], p.Widths[n.In[1]], p.Widths[n.Out]
	if n.Heads > 0 && x%n.Heads == 0 && x+n.Heads*y == out {
		return nil
	}
	if n.Heads <= 0 || x%n.Heads != 0 || y%n.Heads != 0 || x+y != out {
		return fmt.Errorf("%d and %d features of %d heads make %d", x, y, n.Heads, out)
	}
	return nil
}

// SharesHead says whether the parts of a HeadJoin share its second input, which is not in parts then.
func (p *Program) SharesHead(n *Node) bool {
	return p.Widths[n.In[0]]+n.Heads*p.Widths[n.In[1]] == p.Widths[n.Out]
}
