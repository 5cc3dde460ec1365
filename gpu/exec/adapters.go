package exec

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"
	"weak"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/plan"
	"github.com/sluice-ai/sluice/internal/ir"
)

// adapters are those whose factors lie on the card: each is brought by the step that first needs it, and the one that
// was not used for longest leaves for another, as does one that the program has forgotten.
type adapters struct {
	card  *card
	most  int64 // bytes; 0: as many as there is room for
	bytes int64
	held  []*resident
	uses  uint64
}

// resident is an adapter on the card: a kernel.Change for each site, then the factors.
type resident struct {
	of     weak.Pointer[ir.Adapter]
	memory *driver.Buffer
	ranks  int // the most of a site, as Adapt counts them
	steps  int // that were begun with it and not finished: later submissions of theirs may read it
	used   uint64
}

// fillAdapters writes which adapters each row has, and brings those that are not there.
func (m *model) fillAdapters(x *entry, e *plan.Entry) error {
	if !e.Adapts {
		return nil
	}
	lists := words[uint32](x.block, e.Lists, x.shape.Rows)
	clear(lists)
	all := words[kernel.Applied](x.block, e.Applied, 1+len(x.step.Spans)*(ir.MostApplied+1))
	all[0] = kernel.Applied{}
	at := 1
	for i := range x.step.Spans {
		span := &x.step.Spans[i]
		if len(span.Adapters) == 0 {
			continue
		}
		for r := range span.Rows {
			lists[span.Row+r] = uint32(at)
		}
		ranks := 0
		for _, a := range span.Adapters {
			r, err := m.weights.adapters.bring(a.Adapter, x)
			if err != nil {
				return err
			}
			all[at] = kernel.Applied{Changes: r.memory.Address, Scale: a.Scale}
			at, ranks = at+1, ranks+r.ranks
		}
		if ranks > kernel.MostRanks {
			return fmt.Errorf("adapters of a sequence have ranks of %d in all, a card takes %d: ask for fewer, or have the "+
				"processor compute (--device cpu)", ranks, kernel.MostRanks)
		}
		all[at] = kernel.Applied{}
		at++
		x.shape.Adapted = true
	}
	return nil
}

// bring is an adapter on the card, for a step.
func (a *adapters) bring(of *ir.Adapter, x *entry) (*resident, error) {
	key := weak.Make(of)
	a.uses++
	i := slices.IndexFunc(a.held, func(r *resident) bool { return r.of == key })
	if i < 0 {
		r, err := a.load(of)
		if err != nil {
			return nil, err
		}
		i, a.held = len(a.held), append(a.held, r)
	}
	r := a.held[i]
	r.used = a.uses
	if !slices.Contains(x.adapters, r) {
		x.adapters = append(x.adapters, r)
		r.steps++
	}
	return r, nil
}

// release says that a step submits nothing any more.
func (x *entry) release() {
	for _, r := range x.adapters {
		r.steps--
	}
	x.adapters = x.adapters[:0]
}

// load copies an adapter to the card, behind all that was submitted.
func (a *adapters) load(of *ir.Adapter) (*resident, error) {
	pieces, size := laidOut(of)
	if err := a.room(int64(size)); err != nil {
		return nil, err
	}
	memory, err := allocate(a.card.d, driver.Local, size, "adapter")
	if errors.Is(err, driver.ErrScarce) {
		if err := a.leave(func(*resident) bool { return true }); err != nil {
			return nil, err
		}
		memory, err = allocate(a.card.d, driver.Local, size, "adapter")
	}
	if err != nil {
		return nil, err
	}
	r := &resident{of: weak.Make(of), memory: memory, ranks: of.Ranks()}
	if err := a.write(memory, pieces(memory.Address)); err != nil {
		a.card.d.Free(memory)
		return nil, err
	}
	a.bytes += int64(memory.Size)
	return r, nil
}

// laidOut is how an adapter lies on the card: its size, and from an address on its bytes, piece by piece.
func laidOut(of *ir.Adapter) (pieces func(at uint64) [][]byte, size uint64) {
	const each = kernel.ChangeBytes
	size = aligned(uint64(max(1, len(of.Updates)) * each))
	for _, u := range of.Updates {
		if u != nil {
			size += factorBytes(&u.A) + factorBytes(&u.B)
		}
	}
	return func(at uint64) [][]byte {
		changes := make([]kernel.Change, len(of.Updates))
		all := [][]byte{nil}
		next := at + aligned(uint64(max(1, len(changes))*each))
		put := func(f *ir.Factor) (address uint64) {
			address, next = next, next+factorBytes(f)
			all = append(all, numbersOf(f))
			return address
		}
		for i, u := range of.Updates {
			if u == nil {
				continue
			}
			c := kernel.Change{A: put(&u.A), B: put(&u.B), Rank: uint32(u.Rank), Scale: u.Scale}
			if u.A.Halves != nil {
				c.Halves |= 1
			}
			if u.B.Halves != nil {
				c.Halves |= 2
			}
			changes[i] = c
		}
		if len(changes) > 0 {
			all[0] = unsafe.Slice((*byte)(unsafe.Pointer(&changes[0])), len(changes)*each)
		}
		return all
	}, size
}

// factorBytes is the memory of a factor, up to where the next one may begin.
func factorBytes(f *ir.Factor) uint64 { return aligned(uint64(len(numbersOf(f)))) }

func numbersOf(f *ir.Factor) []byte {
	if f.Halves != nil {
		return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f.Halves))), 2*len(f.Halves))
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f.Floats))), 4*len(f.Floats))
}

// write copies pieces to a buffer, each from where the next 256 bytes begin.
func (a *adapters) write(to *driver.Buffer, pieces [][]byte) error {
	s := <-a.card.stages
	defer func() { a.card.stages <- s }()
	if err := s.fit(a.card.d, stageBytes, true); err != nil {
		return err
	}
	at, filled := uint64(0), uint64(0)
	flush := func() error {
		if filled == 0 {
			return nil
		}
		n, from := filled, at
		at, filled = at+filled, 0
		return a.card.queue.once(func(r driver.Recording) error {
			r.BarrierAll()
			r.Copy(to, from, s.host, 0, n)
			r.BarrierAll()
			return nil
		})
	}
	for _, p := range pieces {
		for len(p) > 0 {
			n := copy(s.host.Bytes[filled:stageBytes], p)
			p, filled = p[n:], min(stageBytes, aligned(filled+uint64(n)))
			if filled == stageBytes {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// room has adapters leave until so many bytes are within the bound. Those of the steps at hand stay, beyond it if need
// be: the host's memory bounds them.
func (a *adapters) room(bytes int64) error {
	if err := a.leave(func(r *resident) bool { return r.of.Value() == nil }); err != nil || a.most == 0 {
		return err
	}
	for a.bytes+bytes > a.most {
		var oldest *resident
		for _, r := range a.held {
			if r.steps == 0 && (oldest == nil || r.used < oldest.used) {
				oldest = r
			}
		}
		if oldest == nil {
			return nil
		}
		if err := a.leave(func(r *resident) bool { return r == oldest }); err != nil {
			return err
		}
	}
	return nil
}

// leave frees those that no step needs and of which which says so, when what was submitted has ended.
func (a *adapters) leave(which func(*resident) bool) error {
	goes := func(r *resident) bool { return r.steps == 0 && which(r) }
	if !slices.ContainsFunc(a.held, goes) {
		return nil
	}
	if err := a.card.queue.idle(); err != nil {
		return err
	}
	a.held = slices.DeleteFunc(a.held, func(r *resident) bool {
		if !goes(r) {
			return false
		}
		a.bytes -= int64(r.memory.Size)
		a.card.d.Free(r.memory)
		return true
	})
	return nil
}

// free frees all of them: nothing computes.
func (a *adapters) free() {
	for _, r := range a.held {
		a.card.d.Free(r.memory)
	}
	a.held = nil
}
