package kernel

import (
	"encoding/binary"

	"github.com/sluice-ai/sluice/internal/backend"
)

const (
	// MaxTopK is the most tokens that a draw may choose among.
	MaxTopK = 1024
	// DrawBytes is the size of a draw, as PutDraw writes it.
	DrawBytes = 32

	// RowParts is the workgroups that share a row of logits, each with a part of the scratch memory.
	RowParts = 64
)

// PutDraw writes how a row's token is drawn, as Sample reads it. With a nil d, the row is not drawn.
func PutDraw(to []byte, d *backend.Draw) {
	clear(to[:DrawBytes])
	if d == nil {
		return
	}
	order, scale := binary.LittleEndian, backend.ScaleOf(float64(d.Temp))
	order.PutUint64(to, backend.Random(d.Seed, d.Position, 0))
	order.PutUint64(to[8:], backend.SurpriseOf(d.MinP))
	order.PutUint32(to[16:], scale.Factor)
	order.PutUint32(to[20:], uint32(scale.Shift))
	order.PutUint32(to[24:], backend.ShareOf(d.TopP))
	order.PutUint32(to[28:], uint32(d.TopK))
}

// ArgMaxScratch is the bytes that ArgMax needs for a number of rows.
func ArgMaxScratch(rows int) uint64 { return uint64(rows) * RowParts * 8 }

// ArgMax is the index of the largest of each row's values, as uint32, the first of equal ones, to IDs and to a second
// place, unless that is 0.
type ArgMax struct {
	X, IDs, Second, Scratch uint64
	Width, Stride, Rows     int // Stride in float32
}

// Uses implements Launch.
func (a *ArgMax) Uses(u *Uses) {
	u.readFloats(a.X, a.Rows, a.Stride, a.Width)
	u.writeBytes(a.IDs, 4*a.Rows)
	u.writeBytes(a.Second, 4*a.Rows)
	u.writeBytes(a.Scratch, int(ArgMaxScratch(a.Rows)))
}

// SampleScratch is the bytes that Sample needs for a number of rows.
func SampleScratch(rows int) uint64 { return uint64(rows) * RowParts * MaxTopK * 8 }

// Sample is the drawing of tokens from rows of logits, as stages/sample draws them, bit for bit.
type Sample struct {
	Logits       uint64 // float32 rows
	Draws        uint64 // of DrawBytes for each row, as PutDraw writes them
	IDs, Second  uint64 // of uint32; Second: another place for them, or 0. Rows that are not drawn keep what is there
	Scratch      uint64
	Width        int
	Stride, Rows int // Stride in float32
}

// Uses implements Launch.
func (s *Sample) Uses(u *Uses) {
	u.readFloats(s.Logits, s.Rows, s.Stride, s.Width)
	u.writeBytes(s.IDs, 4*s.Rows)
	u.writeBytes(s.Second, 4*s.Rows)
	u.writeBytes(s.Scratch, int(SampleScratch(s.Rows)))
}
