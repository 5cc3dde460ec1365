package ir

// Value names one symbolic matrix [rows][width] of float32. Rows are those of the running step; the width
// is Program.Widths[v]. Every Value is written by exactly one Node.
type Value int32

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
	Experts    int // Rows is those of so many matrices of the same shape, one after another; 0: of one
}

// SegmentKind is the role of a segment.
type SegmentKind uint8

const (
	SegEmbed SegmentKind = iota + 1 // tokens → residual stream
	SegMix                          // attention or a recurrent mixer of one layer
	SegFFN                          // the feed-forward part of one layer
	SegHead                         // residual stream of the wanted rows → logits
)

// Segment is the smallest part that is placed, streamed, timed and recorded on its own. Nodes run in
// order; a value that outlives its segment is the residual stream.
type Segment struct {
	Kind  SegmentKind
	Layer int // −1 for embed and head
	Nodes []Node
}

// Class is a cache class: layers whose state lives equally long. They share a block table, whose blocks they each have
// memory for.
type Class struct {
	Window int // positions that a row can see, itself included; 0 = all
}

// First is the first position that a row at pos sees; what lies before the row of a sequence that is computed next is
// of no use to it any more.
func (c Class) First(pos int) int {
	if c.Window == 0 {
		return 0
	}
	return max(0, pos-c.Window+1)
}

// KVLayer is the shape of one attention layer's cache: per position KVHeads×KDim values for K and
// KVHeads×VDim for V.
type KVLayer struct {
	KVHeads, KDim, VDim int
	Class               int // index into Program.Classes
}

// Program is a whole model: embed, then mix and ffn for each layer, then head.
type Program struct {
	Arch     string
	Width    int // features of the residual stream
	Vocab    int // columns of the logits
	Context  int // positions the model was trained for
	Widths   []int
	Weights  []Weight
	KV       []KVLayer
	Classes  []Class // of KV, each different
	Segments []Segment
	Logits   Value // output of the head: [wanted rows][Vocab]
	// Ignore names tensors that a file may hold and that this program has no use for.
	Ignore []string
}
