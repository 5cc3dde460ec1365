package live

import "github.com/sluice-ai/sluice/internal/ir"

// Values is what planning knows of a program's values; all slices are by ir.Value.
type Values struct {
	Root []ir.Value // the value that it is a slice of; itself, if it is none
	From []int      // it begins at this feature of its root
}

// ValuesOf looks at all nodes of a program.
func ValuesOf(p *ir.Program) *Values {
	n := len(p.Widths)
	v := &Values{Root: make([]ir.Value, n), From: make([]int, n)}
	for i := range v.Root {
		v.Root[i] = ir.Value(i)
	}
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			n := &p.Segments[s].Nodes[i]
			if n.Op == ir.Slice {
				v.Root[n.Out], v.From[n.Out] = v.Root[n.In[0]], v.From[n.In[0]]+n.From
			}
		}
	}
	return v
}
