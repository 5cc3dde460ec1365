package null

import (
	"fmt"
	"unsafe"

	"github.com/sluice-ai/sluice/gpu/kernel"
)

// touch is a range of bytes that a command read or wrote.
type touch struct {
	from, to uint64
	write    bool
}

// access is how a launch's loop reaches memory: every range that it reads or writes is noted, and must be among the
// uses that the launch declared.
type access struct {
	memory  *memory
	gone    func() bool // the device does nothing more, or another one that it waits for
	uses    kernel.Uses
	touched []touch
}

// fault is the value of a panic by which a loop ends with an error.
type fault struct{ error }

// try runs a loop. One that reaches outside of memory, or of what it declared, ends with an error.
func (x *access) try(loop func(x *access)) (err error) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case fault:
			err = reason.error
		case error:
			err = fmt.Errorf("a loop of its driver broke: %w", reason)
		default:
			panic(reason)
		}
	}()
	loop(x)
	return nil
}

// view is n values at an address, whose range is noted as read or written.
func view[T any](x *access, at uint64, n int, write bool) []T {
	if n == 0 {
		return nil
	}
	var one T
	size := uint64(n) * uint64(unsafe.Sizeof(one))
	bytes, err := x.memory.at(at, size)
	if err != nil {
		panic(fault{err})
	}
	if t := (touch{at, at + size, write}); len(x.touched) > 0 && x.touched[len(x.touched)-1].extend(t) {
		x.touched[len(x.touched)-1].to = t.to
	} else {
		x.touched = append(x.touched, t)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&bytes[0])), n)
}

// extend says whether another touch goes on where this one ends.
func (t touch) extend(u touch) bool { return t.write == u.write && u.from == t.to }

// in is values that the launch must have declared to read.
func in[T any](x *access, at uint64, n int) []T {
	v := view[T](x, at, n, false)
	x.declared("reads", x.uses.Reads, at, n*int(unsafe.Sizeof(*new(T))))
	return v
}

// out is values that the launch must have declared to write.
func out[T any](x *access, at uint64, n int) []T {
	v := view[T](x, at, n, true)
	x.declared("writes", x.uses.Writes, at, n*int(unsafe.Sizeof(*new(T))))
	return v
}

// told is values that no launch has to declare: weights, and what the host wrote about the step.
func told[T any](x *access, at uint64, n int) []T { return view[T](x, at, n, false) }

// kept and keeps are values of a cache or a state, read or written. Its first byte must be declared.
func kept[T any](x *access, cache, offset uint64, n int) []T {
	x.declared("reads", x.uses.Reads, cache, 1)
	return view[T](x, cache+offset, n, false)
}

func keeps[T any](x *access, cache, offset uint64, n int) []T {
	x.declared("writes", x.uses.Writes, cache, 1)
	return view[T](x, cache+offset, n, true)
}

// own claims scratch memory, which a card's kernel writes, though the loop needs none.
func own(x *access, at uint64, bytes int) {
	if at != 0 {
		out[byte](x, at, bytes)
	}
}

// note raises a word that other launches may raise too, in any order: the write does not count as a hazard.
func (x *access) note(at uint64, word uint32) {
	n := len(x.touched)
	noted := &view[uint32](x, at, 1, true)[0]
	*noted = max(*noted, word)
	x.touched = x.touched[:n]
}

// declared ends the loop, by a fault, unless the bytes lie in one row of some use, or in rows of one without gaps.
func (x *access) declared(verb string, uses []kernel.Use, at uint64, bytes int) {
	if bytes == 0 {
		return
	}
	to := at + uint64(bytes)
	for _, u := range uses {
		if u.Rows == 0 || at < u.At {
			continue
		}
		row := uint64(0)
		if u.Rows > 1 && u.Stride > 0 {
			row = min((at-u.At)/u.Stride, uint64(u.Rows-1))
		}
		if begin := u.At + row*u.Stride; to <= begin+u.Width {
			return
		}
		if u.Stride <= u.Width && to <= u.At+uint64(u.Rows-1)*u.Stride+u.Width {
			return
		}
	}
	panic(fault{fmt.Errorf("it %s %d bytes at %#x, which it has not declared: %v", verb, bytes, at, uses)})
}
