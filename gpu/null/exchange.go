package null

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/sluice-ai/sluice/gpu/kernel"
)

// exchanges returns the loop of a launch that waits for other cards, or nil.
func exchanges(l kernel.Launch) func(*access) {
	if k, ok := l.(*kernel.Exchange); ok {
		own := *k
		box := *k.Box
		own.Box = &box
		return func(x *access) { exchange(x, &own) }
	}
	return nil
}

func exchange(x *access, k *kernel.Exchange) {
	number := told[uint32](x, k.First, 1)[0] + uint32(k.Index)
	rows, me := there(x, k.Count, k.Rows), k.Box.Member
	for m, box := range k.Box.At {
		if m == me {
			continue
		}
		left := boxed[float32](x, box+k.Box.Part(number, me), rows*k.Width)
		for r := range rows {
			copy(left[r*k.Width:], in[float32](x, row(k.Part, r, k.PartStride), k.Width))
		}
		atomic.StoreUint32(flag(x, box, me), number)
	}
	for m := range k.Box.At {
		for m != me && int32(atomic.LoadUint32(flag(x, k.Box.At[me], m))-number) < 0 {
			if x.gone() {
				x.note(k.Status, kernel.Unanswered)
				return
			}
			time.Sleep(10 * time.Microsecond)
		}
	}
	for r := range rows {
		if k.Join {
			joinRow(x, k, number, r)
		} else {
			addRow(x, k, number, r)
		}
	}
}

// part is row r of a card's part.
func part(x *access, k *kernel.Exchange, number uint32, member, r int) []float32 {
	if member == k.Box.Member {
		return in[float32](x, row(k.Part, r, k.PartStride), k.Width)
	}
	return boxed[float32](x, k.Box.At[k.Box.Member]+k.Box.Part(number, member)+uint64(4*r*k.Width), k.Width)
}

func joinRow(x *access, k *kernel.Exchange, number uint32, r int) {
	for m := range k.Box.At {
		if m != k.Box.Member {
			copy(out[float32](x, row(k.Y, r, k.YStride)+uint64(4*m*k.Width), k.Width), part(x, k, number, m, r))
		}
	}
}

func addRow(x *access, k *kernel.Exchange, number uint32, r int) {
	sum := make([]float32, k.Width)
	for m := range k.Box.At {
		for i, v := range part(x, k, number, m, r) {
			if m == 0 {
				sum[i] = v
			} else {
				sum[i] += v
			}
		}
	}
	if k.Residual != 0 {
		for i, v := range in[float32](x, row(k.Residual, r, k.YStride), k.Width) {
			sum[i] += v
		}
	}
	copy(out[float32](x, row(k.Y, r, k.YStride), k.Width), sum)
}

// boxed is values in a box. Exchanges order themselves with those of other cards, which is no business of this one's
// barriers.
func boxed[T any](x *access, at uint64, n int) []T {
	if n == 0 {
		return nil
	}
	bytes, err := x.memory.at(at, uint64(n)*uint64(unsafe.Sizeof(*new(T))))
	if err != nil {
		panic(fault{err})
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&bytes[0])), n)
}

// flag is a card's flag in a box.
func flag(x *access, box uint64, member int) *uint32 {
	return &boxed[uint32](x, box+uint64(4*kernel.FlagBlocks*member), 1)[0]
}
