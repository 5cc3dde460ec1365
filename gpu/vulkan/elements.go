//go:build cgo && linux

package vulkan

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Formula is what Each makes of values. With it all of internal/ir that works value by value can be recorded.
type Formula uint32

// Formulas, numbered as in each.comp.
const (
	Copy     Formula = iota // a: parts of rows by A's address and Width, rows by Numbers
	Sum                     // a + b
	Product                 // a·b
	Scaled                  // Factor·a
	SoftCap                 // Factor·tanh(a/Factor)
	Activate                // act(a)
	Gate                    // act(a)·b, or Clamped of both
)

// Each is y[r][i] = f(a[r][i], b[r][i]) for float32 rows. Y may be A or B, unless rows have Numbers. Strides are in
// float32.
type Each struct {
	Formula Formula
	Act     ir.Act // of Activate and Gate
	Factor  float32

	A, B, Y                   uint64
	AStride, BStride, YStride int
	Numbers                   uint64 // of uint32: row r takes row Numbers[r] of a; 0: row r
	Share                     int    // rows of y that have the same row of a, one after the other; 0: 1
	Width                     int
	BWidth                    int // values of a row of b, the last of which stands for all that follow; 0: Width
	Filled                    int // values of y's rows that are written: those past Width are zero; 0: Width
	Rows                      int
	Count                     uint64 // of a uint32: rows that are there; 0: all
}

// Each records it.
func (k *Kernels) Each(r *vk.Recording, e *Each) error {
	if e.Formula > Gate || e.Formula >= Activate && (e.Act == 0 || e.Act > ir.Clamped) ||
		e.Formula == Activate && e.Act == ir.Clamped {
		return fmt.Errorf("formula %d of activation %d is none", e.Formula, e.Act)
	}
	c := shaders.EachConstants{Op: uint32(e.Formula), Act: uint32(e.Act)}
	kernel, err := k.kernel(shaders.Each, c.List())
	if err != nil {
		return err
	}
	p := &shaders.EachPush{A: e.A, B: e.B, Y: e.Y, Numbers: e.Numbers, Count: e.Count, Width: uint32(e.Width),
		Filled: uint32(max(e.Width, e.Filled)), BWidth: uint32(e.BWidth), AStride: uint32(e.AStride),
		BStride: uint32(e.BStride), YStride: uint32(e.YStride), Factor: e.Factor,
		Share: uint32(max(1, e.Share))}
	if e.BWidth == 0 {
		p.BWidth = p.Width
	}
	vk.Use(r, kernel, p)
	r.Dispatch((p.Filled+255)/256, uint32(e.Rows), 1)
	return nil
}

// GroupNorm is any norm of internal/ir: RMS or layer, of groups of features, with weight and bias or without. Norm is
// faster for what it can do, and quantises; its sums have another order. Y may be X.
type GroupNorm struct {
	X, Y, Gain, Bias       uint64 // Gain and Bias: 0 for none
	GainByRow, BiasByRow   bool   // they have the row's width, not a group's
	Layer                  bool   // subtract the mean
	Width, Group           int    // of a row, of a group
	XStride, YStride, Rows int    // strides in float32
	Eps                    float32
	Count                  uint64 // of a uint32: rows that are there; 0: all
}

// GroupNorm records it.
func (k *Kernels) GroupNorm(r *vk.Recording, n *GroupNorm) error {
	if n.Group < 1 || n.Width%n.Group != 0 {
		return fmt.Errorf("a norm of %d features by groups of %d", n.Width, n.Group)
	}
	c := shaders.GroupNormConstants{Threads: 64}
	if n.Group >= 1024 && k.d.Facts.Invocations >= 256 {
		c.Threads = 256
	}
	if n.Layer {
		c.Layer = 1
	}
	kernel, err := k.kernel(shaders.GroupNorm, c.List())
	if err != nil {
		return err
	}
	p := &shaders.GroupNormPush{X: n.X, Y: n.Y, Gain: n.Gain, Bias: n.Bias, Count: n.Count, Group: uint32(n.Group),
		XStride: uint32(n.XStride), YStride: uint32(n.YStride), Eps: n.Eps}
	if n.GainByRow {
		p.GainGroups = 1
	}
	if n.BiasByRow {
		p.BiasGroups = 1
	}
	vk.Use(r, kernel, p)
	r.Dispatch(uint32(n.Width/n.Group), uint32(n.Rows), 1)
	return nil
}

// Turn is the rotation of the heads of rows, by angles as Attention has them. Y may be X.
type Turn struct {
	X, Y, Angles          uint64
	Heads, Features, Dims int // Dims of a head's Features rotate, from the first
	Interleaved           bool
	XStride, YStride      int // in float32
	Rows                  int
	Count                 uint64 // of a uint32: rows that are there; 0: all
}

// Turn records it.
func (k *Kernels) Turn(r *vk.Recording, t *Turn) error {
	if t.Dims > t.Features || t.Dims%2 != 0 {
		return fmt.Errorf("%d of %d features rotate", t.Dims, t.Features)
	}
	kernel, err := k.kernel(shaders.Turn, nil)
	if err != nil {
		return err
	}
	p := &shaders.TurnPush{X: t.X, Y: t.Y, Angles: t.Angles, Count: t.Count, Heads: uint32(t.Heads),
		Features: uint32(t.Features), Dims: uint32(t.Dims), XStride: uint32(t.XStride), YStride: uint32(t.YStride)}
	if t.Interleaved {
		p.Interleaved = 1
	}
	vk.Use(r, kernel, p)
	r.Dispatch(uint32((t.Heads*(t.Features-t.Dims/2)+63)/64), uint32(t.Rows), 1)
	return nil
}

// Angles appends what a row at a position is rotated by: cosine and sine of each pair, in double precision until the
// last, times Mscale. divisors is the weight of internal/ir's RoPE; nil: ones.
func Angles(to []float32, a *ir.RoPEArgs, divisors []float32, position int) []float32 {
	for i, freq := range a.Freq {
		angle := float64(position) * freq
		if divisors != nil {
			angle /= float64(divisors[i])
		}
		sin, cos := math.Sincos(angle)
		to = append(to, float32(cos*float64(a.Mscale)), float32(sin*float64(a.Mscale)))
	}
	return to
}
