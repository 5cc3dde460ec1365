//go:build cgo && linux

package vulkan

import (
	"encoding/binary"
	"math"

	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
)

const squareParts = 256 // elements of a cooperative matrix: 8 in each of 32 lanes

// findLayout asks the device, by a kernel, which lane holds which elements of a cooperative matrix. It returns the
// layout as matmul.comp takes it; 0, if it is none of those that this knows, works everywhere.
func (k *Kernels) findLayout() uint32 {
	b, err := k.d.Allocate(vk.Staging, 2*4*squareParts)
	if err != nil {
		return 0
	}
	defer k.d.Free(b)
	if k.runSquares(b) != nil {
		return 0
	}
	var at [2][squareParts]int // of float32, and of integers: by lane and element, row·16 + column
	for i := range squareParts {
		f := math.Float32frombits(binary.LittleEndian.Uint32(b.Bytes[4*i:]))
		w := binary.LittleEndian.Uint32(b.Bytes[4*(squareParts+i):])
		if f < 0 || f >= squareParts || w >= squareParts {
			return 0
		}
		at[0][int(f)], at[1][w] = i, i
	}
	return layoutOf(&at)
}

// layoutOf is the layout in which elements lie, by lane and element, or 0 if matmul.comp does not know it.
func layoutOf(at *[2][squareParts]int) (layout uint32) {
	for e := range 8 {
		row, column := at[0][e]/16, at[0][e]%16
		layout |= uint32(row/8)<<e | uint32(column%2)<<(8+e) | uint32(column/8)<<(16+e)
	}
	for i := range squareParts {
		lane, e := i/8, i%8
		row := lane/4 + int(layout>>e&1)*8
		column := lane%4*2 + int(layout>>(8+e)&1) + int(layout>>(16+e)&1)*8
		if at[0][i] != row*16+column || at[1][i] != at[0][i] {
			return 0
		}
	}
	return layout
}

func (k *Kernels) runSquares(b *vk.Buffer) error {
	shader, err := k.kernel(shaders.Squares, nil)
	if err != nil {
		return err
	}
	line, err := k.d.NewTimeline()
	if err != nil {
		return err
	}
	defer line.Close()
	r, err := k.d.Record(0)
	if err != nil {
		return err
	}
	defer r.Close()
	vk.Use(r, shader, &shaders.SquaresPush{Floats: b.Address, Words: b.Address + 4*squareParts})
	r.Dispatch(1, 1, 1)
	r.BarrierToHost()
	if err := r.End(); err != nil {
		return err
	}
	if err := k.d.Submit([]*vk.Recording{r}, nil, vk.Point{Timeline: line, Value: 1}); err != nil {
		return err
	}
	err = line.Wait(1, k.d.Patience())
	if err != nil {
		k.d.Hold() // the kernel may still be running
	}
	return err
}
