//go:build linux && (amd64 || arm64) && (cgo || cuda)

package fake

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNorm: a kernel with barriers and shuffles computes what its comment says, whatever the number of threads.
func TestNorm(t *testing.T) {
	k := Open(t)
	const width, stride, rows = 300, 512, 3
	var pin runtime.Pinner
	defer pin.Unpin()
	x, gain := make([]float32, rows*stride+4), make([]float32, width)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range x {
		x[i] = random.Float32() - 0.5
	}
	for i := range gain {
		gain[i] = random.Float32()
	}
	var first []float32
	for _, threads := range []int{32, 64, 512} {
		y := make([]float32, rows*stride+4)
		args := struct {
			X, Y, Gain              uint64
			Width, XStride, YStride uint32
			Eps                     float32
			Quantise, _             uint32
		}{aligned(&pin, x), aligned(&pin, y), aligned(&pin, gain), width, stride, stride, 1e-5, 0, 0}
		Run(k, "norm", "norm", [3]uint32{rows, 1, 1}, threads, stride/8, &args)
		if first == nil {
			first = y
		}
		require.Equal(t, first, y, "%d threads", threads)
	}
	for r := range rows {
		sum := 0.0
		for _, v := range x[r*stride:][:width] {
			sum += float64(v) * float64(v)
		}
		for i, v := range x[r*stride:][:width] {
			want := float64(v) * float64(gain[i]) / math.Sqrt(sum/width+1e-5)
			require.InDelta(t, want, first[r*stride+i], 1e-6)
		}
		require.Equal(t, make([]float32, stride-width), first[r*stride+width:][:stride-width])
	}
}

// aligned is Address of a slice that begins at a multiple of 16 bytes, as Go gives large ones.
func aligned(pin *runtime.Pinner, s []float32) uint64 {
	a := Address(pin, s)
	if a%16 != 0 {
		panic("memory of so many bytes is aligned")
	}
	return a
}
