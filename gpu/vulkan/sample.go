//go:build cgo && linux

package vulkan

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
)

// MaxTopK is the most tokens that a draw may choose among.
const MaxTopK = 1024

// DrawBytes is what PutDraw writes.
const DrawBytes = 32

// sampleParts is the workgroups that share a row.
const sampleParts = 64

// CanDraw says whether Sample draws so: among few tokens, on a device that has float64. The likeliest token is
// ArgMax's.
func (k *Kernels) CanDraw(d *backend.Draw) bool {
	return k.d.Facts.Has.Float64 && !d.Host && d.Temp > 0 && d.TopK > 0 && d.TopK <= MaxTopK
}

// PutDraw writes how a row is drawn, as Sample reads it; nil: it is not.
func PutDraw(to []byte, d *backend.Draw) {
	clear(to[:DrawBytes])
	if d == nil {
		return
	}
	share := math.Inf(-1)
	if d.MinP > 0 {
		share = math.Log(float64(d.MinP))
	}
	order := binary.LittleEndian
	order.PutUint64(to, math.Float64bits(backend.Uniform(d.Seed, d.Position, 0)))
	order.PutUint64(to[8:], math.Float64bits(share))
	order.PutUint32(to[16:], math.Float32bits(d.Temp))
	order.PutUint32(to[20:], math.Float32bits(d.TopP))
	order.PutUint32(to[24:], uint32(d.TopK))
}

// Sample is the drawing of tokens from rows of logits, as stages/sample draws them, bit for bit.
type Sample struct {
	Logits       uint64 // float32 rows
	Draws        uint64 // of what PutDraw writes, one for each row
	IDs, Second  uint64 // of uint32; Second: another place for them, or 0. Rows that are not drawn keep what is there
	Scratch      uint64
	Width        int
	Stride, Rows int // Stride in float32
}

// SampleScratch is the bytes that Sample needs for so many rows.
func SampleScratch(rows int) uint64 { return uint64(rows) * sampleParts * MaxTopK * 8 }

// Sample records it.
func (k *Kernels) Sample(r *vk.Recording, s *Sample) error {
	if !k.d.Facts.Has.Float64 {
		return errors.New("this device has no float64 to draw tokens with")
	}
	for join := range uint32(2) {
		c := shaders.SampleConstants{Join: join, Most: MaxTopK}
		kernel, err := k.kernel(shaders.Sample, c.List())
		if err != nil {
			return err
		}
		vk.Use(r, kernel, &shaders.SamplePush{Logits: s.Logits, Scratch: s.Scratch, Draws: s.Draws, Ids: s.IDs,
			Second: s.Second, Width: uint32(s.Width), Stride: uint32(s.Stride), Parts: sampleParts})
		if join == 0 {
			r.Dispatch(sampleParts, uint32(s.Rows), 1)
			r.Barrier()
		} else {
			r.Dispatch(1, uint32(s.Rows), 1)
		}
	}
	return nil
}
