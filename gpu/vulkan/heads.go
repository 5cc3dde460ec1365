//go:build cgo && linux

package vulkan

import (
	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// HeadCopy is y[r][h·YHead + i] = x[r][h·XHead + i] for i below Width, in each head of rows.
type HeadCopy struct {
	X, Y                uint64 // of the first value that is copied
	Heads, Width        int
	XHead, YHead        int // features of a head
	XStride, YStride, N int // in float32; rows
	Count               uint64
}

// HeadCopy records it.
func (k *Kernels) HeadCopy(r *vk.Recording, c *HeadCopy) error {
	kernel, err := k.kernel(shaders.HeadCopy, nil)
	if err != nil {
		return err
	}
	vk.Use(r, kernel, &shaders.HeadCopyPush{X: c.X, Y: c.Y, Count: c.Count, Heads: uint32(c.Heads),
		Width: uint32(c.Width), XHead: uint32(c.XHead), YHead: uint32(c.YHead), XStride: uint32(c.XStride),
		YStride: uint32(c.YStride)})
	r.Dispatch(uint32((c.Heads*c.Width+63)/64), uint32(c.N), 1)
	return nil
}

// HeadLinear multiplies each head of rows by a matrix of its own. W is all of them, one after the other.
type HeadLinear struct {
	W                *Matrix
	X, Y             uint64 // float32 rows
	Heads            int
	XStride, YStride int // in float32
	Rows             int
	Count            uint64 // of a uint32: rows that are there; 0: all
}

// HeadLinear records it. A row has the same bits among any others.
func (k *Kernels) HeadLinear(r *vk.Recording, h *HeadLinear) error {
	c := shaders.HeadLinearConstants{Threads: uint32(32 * min(8, (h.W.Cols+31)/32)),
		Columns: uint32(min(h.Rows, MaxColumns))}
	kernel, err := k.kernel(formats[h.W.Type].heads, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, kernel, &shaders.HeadLinearPush{Weights: h.W.Address, X: h.X, Y: h.Y, Count: h.Count,
		Rows: uint32(h.W.Rows), Each: uint32(h.W.Rows / h.Heads), Width: uint32(h.W.Cols), Tiles: uint32(h.W.kTiles()),
		XStride: uint32(h.XStride), YStride: uint32(h.YStride)})
	r.Dispatch(uint32(h.W.rowTiles()), uint32((h.Rows+MaxColumns-1)/MaxColumns), 1)
	return nil
}

// headLinear plans a HeadLinear.
func (l *planner) headLinear(n *ir.Node) {
	w, a, y := l.m.weights[n.W].matrix, l.place(n.In[0]), l.put(n)
	l.launch(launch{reads: []*live.Buffer{a.b}, writes: []*live.Buffer{y.b}, record: func(x *recorder) error {
		return x.k.HeadLinear(x.r, &HeadLinear{W: x.matrix(w), X: x.at(a), XStride: stride(a.b), Y: x.at(y),
			YStride: stride(y.b), Heads: n.Heads, Rows: x.n, Count: x.count(0)})
	}})
}

// headParts plans a HeadSlice, or a HeadJoin: features from From on, or those of one value behind those of the other.
func (l *planner) headParts(n *ir.Node) {
	y, at := l.put(n), 0
	head := func(v ir.Value) int { return l.p.Widths[v] / n.Heads }
	for i, v := range n.In {
		a, to := l.place(v), place{y.b, y.from + at}
		c := HeadCopy{Heads: n.Heads, XHead: head(v), YHead: head(n.Out), Width: head(v)}
		if i == 1 && l.p.SharesHead(n) {
			c.XHead, c.Width = 0, l.p.Widths[v]
		}
		if n.Op == ir.HeadSlice {
			a.from += n.From
			c.Width = c.YHead
		}
		at += c.Width
		l.launch(launch{reads: []*live.Buffer{a.b}, writes: []*live.Buffer{y.b}, record: func(x *recorder) error {
			c := c
			c.X, c.XStride, c.Y, c.YStride, c.N, c.Count = x.at(a), stride(a.b), x.at(to), stride(y.b), x.n, x.count(0)
			return x.k.HeadCopy(x.r, &c)
		}})
	}
}
