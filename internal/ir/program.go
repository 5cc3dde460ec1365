package ir

import (
	"math"
	"slices"
)

// Value names one symbolic matrix [rows][width] of float32. Rows are those of the running step; the width
// is Program.Widths[v]. Every Value is written by exactly one Node.
type Value int32

// NoValue stands for “none”.
const NoValue Value = -1

// Input is what a step brings: token ids, which Embed reads, or rows of floats, which are a value that no node writes.
type Input struct {
	Name  string
	Value Value // NoValue: ids
}

// Output is a value that can be read by its name. If the program has an end, the first output is the end's, logits or
// vectors, which every step leaves in its memory; other outputs are copied on demand.
type Output struct {
	Name  string
	Value Value
}

// Axis says which rows a value has.
type Axis uint8

const (
	AllRows    Axis = iota + 1 // those of the step: texts, or pictures line by line, one after another
	WantedRows                 // some of them: what follows Rows
)

// Ref names a weight: an index into Program.Weights. NoRef stands for “none”.
type Ref int32

// NoRef marks an absent optional weight.
const NoRef Ref = -1

// Use says how a weight is read, which decides what a device may do with its layout.
type Use uint8

const (
	// Matrix is multiplied from the left, y = W·x, and may also be a Table (a tied head).
	Matrix Use = 1 << iota
	// Table is read by whole rows: an embedding.
	Table
	// Vector is read as float32 values: norm weights, biases, RoPE factors.
	Vector
)

// Weight is a tensor that the program needs: Rows × Cols, where Cols is the contiguous dimension (GGUF's
// ne[0], the input features of a Linear). A vector of n values has Rows 1 and Cols n.
type Weight struct {
	Name       string // the tensor's name in the file, e.g. "blk.0.attn_q.weight"
	Rows, Cols int
	Use        Use
	Experts    int // Rows counts those of so many stacked matrices of the same shape; 0: of one
	Heads      int // the same, of matrices that are all used together, one for each head
}

// SegmentKind is the role of a segment.
type SegmentKind uint8

const (
	SegEmbed   SegmentKind = iota + 1 // tokens → residual stream
	SegMix                            // attention or a recurrent mixer of one layer
	SegFFN                            // the feed-forward part of one layer, if it is dense
	SegRoute                          // of a mixture: the router, and what all rows share
	SegExperts                        // of a mixture: the chosen experts, and the sum into the residual stream
	SegHead                           // residual stream of the wanted rows → logits
	SegPool                           // residual stream of the wanted rows → vectors: an encoder has no logits
	SegBlock                          // a part of a program that is no text
	lastKind
)

// SegmentKinds is the length of an array by SegmentKind.
const SegmentKinds = int(lastKind)

// Ends says whether a segment of this kind is a text program's last: its rows are the wanted ones.
func (k SegmentKind) Ends() bool { return k == SegHead || k == SegPool }

// Segment is the smallest part that is placed, streamed, timed and recorded on its own. Nodes run in order.
type Segment struct {
	Kind  SegmentKind
	Layer int // −1 for embed, head and pool; of a block its number
	Nodes []Node
	// Carries is all values that later segments read, and the outputs among the segment's own, in ascending order. In a
	// text program that is the residual stream, which the last node wrote, and those of the embed segment's values that
	// a later segment reads. A route carries instead of the stream exactly what its experts read: the stream as the
	// route took it in, the normed input, the weights, and the results that all rows share. What an end leaves in the
	// step's memory is not carried.
	Carries []Value
}

// Stream is the value of the residual stream after the segment; of a route, before it.
func (s *Segment) Stream() Value {
	if s.Kind == SegRoute {
		return s.Carries[0]
	}
	return s.Nodes[len(s.Nodes)-1].Out
}

// inputs lists, in ascending order, the values that nodes read and that no node of the segment writes.
func (s *Segment) inputs() []Value {
	var read, written []Value
	for i := range s.Nodes {
		read, written = append(read, s.Nodes[i].In...), append(written, s.Nodes[i].Out)
	}
	slices.Sort(read)
	return slices.DeleteFunc(slices.Compact(read), func(v Value) bool { return slices.Contains(written, v) })
}

func (s *Segment) writes(v Value) bool {
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Out == v })
}

// Class is a cache class: layers whose state lives equally long. They share a block table; each layer has its own
// memory for the table's blocks.
type Class struct {
	Window  int  // positions that a row can see at most, itself included; 0 = all
	Chunked bool // a row sees only its own chunk of Window positions; the first chunk begins at 0
	State   bool // no positions: a row goes on from the state that the row before left; Window and Chunked are zero
}

// First is the first position that a row at pos sees, or whose state it goes on from. Once pos is the next row of a
// sequence, the sequence needs nothing before First.
func (c Class) First(pos int) int {
	switch {
	case c.State:
		return max(0, pos-1)
	case c.Window == 0:
		return 0
	case c.Chunked:
		return pos - pos%c.Window
	}
	return max(0, pos-c.Window+1)
}

// Last is the last row that sees position pos.
func (c Class) Last(pos int) int {
	switch {
	case c.State:
		return pos + 1
	case c.Window == 0:
		return math.MaxInt
	case c.Chunked:
		return pos - pos%c.Window + c.Window - 1
	}
	return pos + c.Window - 1
}

// KVLayer is the shape of one attention layer's cache: per position KVHeads×KDim values for K and
// KVHeads×VDim for V.
type KVLayer struct {
	KVHeads, KDim, VDim int
	Class               int // index into Program.Classes
	// Recent is the class of the blocks in which rows are stored until a block is full and sealed into one of Class; 0:
	// rows are stored in Class itself.
	Recent int
}

// StateLayer is what one node keeps of a sequence, however long it is: Values float32. A block of its class holds the
// state after the last computed one of its positions. The row at a position goes on from the state in the block of the
// position before it, and leaves its own in the block of its position. So full blocks keep the states at their ends,
// and a sequence with the same tokens up to there can go on from one.
type StateLayer struct {
	Values int
	Class  int // index into Program.Classes
}

// Program is a whole model: a chain of segments. All values that cross a border between segments are in Carries. What
// else holds for a program depends on its Form: see Check.
// Wide: a program is data. Its tables and facts are each read alone, by whoever walks it.
type Program struct {
	Arch     string
	Width    int // features of the residual stream
	Vocab    int // tokens that there are
	Context  int // positions the model was trained for
	Widths   []int
	Weights  []Weight
	KV       []KVLayer
	States   []StateLayer
	Classes  []Class // of KV and States, each different
	Sites    []Site  // that adapters may change; none: the program takes no adapters
	Segments []Segment
	Inputs   []Input
	Outputs  []Output
	// Ignore names tensors that a file may hold though this program does not use them; an entry that ends in a dot
	// stands for all names that begin with it.
	Ignore []string
	// Known is the token of each column of the logits, where not all tokens have one; nil: column i is token i's.
	Known []int32
	// Part says that a file's tensors belong to another program, of which this one uses some.
	Part bool
	// Positions is the number of learned positions; 0: positions are not learned, and there may be any number.
	Positions int
	Pooling   Pooling // of a program that ends with a pool
	// Whole says that texts are computed in one step each, from position 0 on: their rows see what comes after them.
	// What such a row leaves in a cache is of no use to another text, even to one that begins alike.
	Whole bool
	// Hears says that an encoder reads the first positions of a text, and that spans say how many: see Side.
	Hears bool
	// Grid says that the rows of each span are a picture's, and that spans say how high and wide it is.
	Grid bool
}

// Takes lists the values that a segment may read and does not write: what the segment before carries, or the program's
// inputs of rows. A device that did not run that segment must be given them, Widths[v] features for every row of the
// step.
func (p *Program) Takes(segment int) []Value {
	if segment > 0 {
		return p.Segments[segment-1].Carries
	}
	var taken []Value
	for _, in := range p.Inputs {
		if in.Value != NoValue {
			taken = append(taken, in.Value)
		}
	}
	return taken
}

// TakesTokens says whether token ids are among the inputs.
func (p *Program) TakesTokens() bool {
	return slices.ContainsFunc(p.Inputs, func(in Input) bool { return in.Value == NoValue })
}

// Input finds an input of rows of floats by its name.
func (p *Program) Input(name string) (Value, bool) {
	for _, in := range p.Inputs {
		if in.Name == name && in.Value != NoValue {
			return in.Value, true
		}
	}
	return NoValue, false
}

// Output finds an output by its name.
func (p *Program) Output(name string) (Value, bool) {
	for _, out := range p.Outputs {
		if out.Name == name {
			return out.Value, true
		}
	}
	return NoValue, false
}

// End is what the last segment leaves in a step's memory: logits, or vectors. NoValue: the program has no end.
func (p *Program) End() Value {
	if n := len(p.Segments); n > 0 && p.Segments[n-1].Kind.Ends() && len(p.Outputs) > 0 {
		return p.Outputs[0].Value
	}
	return NoValue
}

// Axis says what the rows of a value are.
func (p *Program) Axis(v Value) Axis {
	if n := len(p.Segments); n > 0 && p.Segments[n-1].Kind.Ends() && p.Segments[n-1].writes(v) {
		return WantedRows
	}
	return AllRows
}

// carried lists what each segment has to carry: the values that later segments read and that neither those nor segments
// between write, and the outputs that it writes.
func (p *Program) carried() [][]Value {
	carried, end := make([][]Value, len(p.Segments)), p.End()
	for i := len(p.Segments) - 1; i >= 0; i-- {
		var live []Value
		if i+1 < len(p.Segments) {
			next := &p.Segments[i+1]
			live = next.inputs()
			for _, v := range carried[i+1] {
				if !next.writes(v) {
					live = append(live, v)
				}
			}
		}
		for _, out := range p.Outputs {
			if out.Value != end && p.Segments[i].writes(out.Value) {
				live = append(live, out.Value)
			}
		}
		slices.Sort(live)
		carried[i] = slices.Compact(live)
	}
	return carried
}

// All lists every segment.
func (p *Program) All() []int {
	all := make([]int, len(p.Segments))
	for i := range all {
		all[i] = i
	}
	return all
}

// Columns is how many tokens logits are computed for.
func (p *Program) Columns() int {
	if p.Known != nil {
		return len(p.Known)
	}
	return p.Vocab
}

// OutputWidth is the number of features of the End: Columns for logits, else the width of vectors. 0: there is no end.
func (p *Program) OutputWidth() int {
	if end := p.End(); end != NoValue {
		return p.Widths[end]
	}
	return 0
}
