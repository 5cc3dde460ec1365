package kernel

// Launch is one kernel with its arguments.
type Launch interface {
	// Uses adds the memory that the launch reads and writes and that another launch of the same recording may write:
	// activations, caches and states, but neither weights nor what the host wrote before the step.
	Uses(u *Uses)
}

// Uses is the memory that a launch reads and writes.
type Uses struct{ Reads, Writes []Use }

// Use is a number of rows of Width bytes. The first begins at At, each other one Stride bytes behind the one before. A
// cache or a state is one byte at its address, which stands for all of it.
type Use struct {
	At            uint64
	Rows          int
	Stride, Width uint64
}

// Meets says whether two uses have a byte in common. Rows of equal strides may lie side by side without meeting. With
// different strides, the ranges from first to last byte are compared.
func (a Use) Meets(b Use) bool {
	if a.At > b.At {
		a, b = b, a
	}
	if a.end() <= b.At || a.Width == 0 || b.Width == 0 || b.Rows == 0 {
		return false
	}
	if a.Stride != b.Stride || a.Stride == 0 || a.Rows < 2 && b.Rows < 2 {
		return true
	}
	beside := (b.At - a.At) % a.Stride
	return beside < a.Width || beside+b.Width > a.Stride
}

func (a Use) end() uint64 {
	if a.Rows == 0 {
		return a.At
	}
	return a.At + uint64(a.Rows-1)*a.Stride + a.Width
}

// Reset forgets all uses, and keeps their memory.
func (u *Uses) Reset() { u.Reads, u.Writes = u.Reads[:0], u.Writes[:0] }

func (u *Uses) read(at uint64, rows, stride, width int) {
	if at != 0 {
		u.Reads = append(u.Reads, Use{at, rows, uint64(stride), uint64(width)})
	}
}

func (u *Uses) write(at uint64, rows, stride, width int) {
	if at != 0 {
		u.Writes = append(u.Writes, Use{at, rows, uint64(stride), uint64(width)})
	}
}

// readFloats and writeFloats add rows of float32, with stride and width in values.
func (u *Uses) readFloats(at uint64, rows, stride, width int) { u.read(at, rows, 4*stride, 4*width) }

func (u *Uses) writeFloats(at uint64, rows, stride, width int) { u.write(at, rows, 4*stride, 4*width) }

// readBytes and writeBytes add one range.
func (u *Uses) readBytes(at uint64, bytes int) { u.read(at, 1, bytes, bytes) }

func (u *Uses) writeBytes(at uint64, bytes int) { u.write(at, 1, bytes, bytes) }

// readAll and writeAll add a cache or a state.
func (u *Uses) readAll(at uint64) { u.readBytes(at, 1) }

func (u *Uses) writeAll(at uint64) { u.writeBytes(at, 1) }
