package kernel

import "github.com/sluice-ai/sluice/internal/ir"

// GroupedColumns is how many pairs an entry has when many rows are gathered for mat-mat kernels.
const GroupedColumns = 32

// NoExpert is the id that stands for no expert.
const NoExpert = 1<<32 - 1

// Choice says which experts a MatVec takes, and for which rows. A pair is a row with one of the experts that it uses:
// pair p is of row p/used, and its results are row p of y.
type Choice struct {
	List    uint64 // Route's ids, or Group's entries
	Entries int    // of the list: pairs, entries of Group, or rows if their experts are summed
	Pairs   int    // of all rows
	Grouped int    // pairs of an entry, and columns of a MatVec, if the list is Group's; 0: the list is of single pairs
	Share   int    // pairs with the same row of x: the experts of a row before gate and up, 1 before down
	// Shares is Route's weights; 0: none. With it, y[row] is what Combine would make of the row's pairs, Share of them,
	// and the residual.
	Shares uint64
}

// Columns is how many columns a MatVec with this choice has.
func (c *Choice) Columns() int { return max(1, c.Grouped) }

// rows is how many rows x and y have.
func (c *Choice) rows() (from, to int) {
	if c.Shares != 0 {
		return c.Entries * c.Share, c.Entries
	}
	return (c.Pairs + c.Share - 1) / max(1, c.Share), c.Pairs
}

// listed is the length of the list in words.
func (c *Choice) listed() int {
	switch {
	case c.Shares != 0:
		return c.Entries * c.Share
	case c.Grouped > 0:
		return c.Entries * (c.Grouped + 1)
	}
	return c.Entries
}

// Route chooses the experts of rows, as ir.Route does.
type Route struct {
	Args         *ir.RouteArgs
	Experts      int
	Logits, Bias uint64 // Bias 0: none
	Factors      uint64 // by expert, what its weight is multiplied by; 0: none
	XStride      int    // of logits, in float32
	IDs          uint64 // of uint32 [row][used], ascending
	Weights      uint64 // [row][used]
	Dense        uint64 // [row][experts], with 0 for all that are not chosen; 0: not wanted
	DenseStride  int
	Rows         int
	Count        uint64 // address of a uint32, how many of the rows are in use; 0: all
}

// Uses implements Launch.
func (r *Route) Uses(u *Uses) {
	u.readFloats(r.Logits, r.Rows, r.XStride, r.Experts)
	u.writeBytes(r.IDs, 4*r.Args.Used*r.Rows)
	u.writeBytes(r.Weights, 4*r.Args.Used*r.Rows)
	u.writeFloats(r.Dense, r.Rows, r.DenseStride, r.Experts)
}

// Chosen lists a choice of experts that another device made: IDs and Weights as Route would write them, from the
// weights of all experts at Dense, which are 0 for those that are not chosen.
type Chosen struct {
	Experts, Used int
	Dense         uint64
	DenseStride   int
	IDs, Weights  uint64 // as Route's
	Rows          int
	Count         uint64
}

// Uses implements Launch.
func (c *Chosen) Uses(u *Uses) {
	u.readFloats(c.Dense, c.Rows, c.DenseStride, c.Experts)
	u.writeBytes(c.IDs, 4*c.Used*c.Rows)
	u.writeBytes(c.Weights, 4*c.Used*c.Rows)
}

// GroupEntries is the most entries that Group makes of a number of pairs, with size pairs in each.
func GroupEntries(experts, pairs, size int) int { return min(pairs, experts) + pairs/size }

// GroupBytes is the memory of those entries: each has size + 1 words.
func GroupBytes(experts, pairs, size int) uint64 {
	return uint64(GroupEntries(experts, pairs, size)) * 4 * uint64(size+1)
}

// Group gathers the pairs of each expert in entries of Size pairs, so that weights are read once for many rows.
type Group struct {
	IDs, Entries         uint64
	Experts, Pairs, Size int // Size: pairs of an entry
}

// Uses implements Launch.
func (g *Group) Uses(u *Uses) {
	u.readBytes(g.IDs, 4*g.Pairs)
	u.writeBytes(g.Entries, int(GroupBytes(g.Experts, g.Pairs, g.Size)))
}

// Combine is y[row] = Σ weight·x[pair] over a row's experts in ascending order, and the residual.
type Combine struct {
	X, Weights, Residual, Y uint64 // Weights 0: ones; Residual 0: none; it may be Y
	XStride, YStride        int    // in float32; YStride of Residual, too
	Width, Used, Rows       int
	Count                   uint64 // address of a uint32, how many of the rows are in use; 0: all
}

// Uses implements Launch.
func (c *Combine) Uses(u *Uses) {
	u.readFloats(c.X, c.Used*c.Rows, c.XStride, c.Width)
	u.readBytes(c.Weights, 4*c.Used*c.Rows)
	u.readFloats(c.Residual, c.Rows, c.YStride, c.Width)
	u.writeFloats(c.Y, c.Rows, c.YStride, c.Width)
}
