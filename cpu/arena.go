package cpu

import "unsafe"

// arena is memory that is handed out piece by piece.
type arena struct{ left []float32 }

func (a *arena) take(n int) []float32 {
	part := a.left[:n:n]
	a.left = a.left[n:]
	return part
}

// align rounds bytes up to cache lines.
func align(n int) int { return (n + 63) &^ 63 }

// floats views memory as float32.
func floats(memory []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/4)
}

// bytesOf views float32 memory as bytes.
func bytesOf(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}
