package compose

import (
	"slices"
	"unsafe"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
)

// link brings a value from the device that writes it to those that take it: by rows in the program's memory, which all
// of them reach or copy from. What goes from card to card, or over a network, will be another way to leave and arrive.
type link struct {
	value ir.Value
	width int
	from  int // the segment that writes it; below 0: it is an input of the program
	taken int // the last segment before which a device takes it
	rows  []float32
}

// leave copies the value out of its device, just after its segment was run: later the device may not have it any more.
// It waits if the device computes beside the program.
func (x *link) leave(from *member, s *backend.Step) error {
	return from.Out(x.value, s, x.rows[:s.Rows()*x.width])
}

// arrive copies the value to a device, just before the device's first segment that takes it.
func (x *link) arrive(to *member, s *backend.Step) error {
	return to.In(x.value, s, x.rows[:s.Rows()*x.width])
}

// links are all links of a program.
type links struct {
	takes, hands [][]*link // by segment: what comes from other devices before it, and goes to them after it
	inputs       []*link
	memory       []byte
}

// newLinks finds the values that cross where segments are computed on these devices.
func newLinks(p *ir.Bound, devices []int, rows int) (*links, error) {
	x := &links{takes: make([][]*link, len(p.Segments)), hands: make([][]*link, len(p.Segments))}
	all := map[ir.Value]*link{}
	for _, c := range backend.Crossings(p, devices) {
		l := all[c.Value]
		if l == nil {
			l = &link{value: c.Value, width: p.Widths[c.Value], from: c.From}
			if all[c.Value] = l; c.From < 0 {
				x.inputs = append(x.inputs, l)
			} else {
				x.hands[c.From] = append(x.hands[c.From], l)
			}
		}
		l.taken = c.To // they come in order
		x.takes[c.To] = append(x.takes[c.To], l)
	}
	return x, x.room(rows)
}

// area is memory that several values use one after another.
type area struct {
	width int
	until int // the segment before which the last of them is taken
	of    []*link
}

// room allocates the memory of values on their way between devices. An area is free for the next value once the last
// device has taken the one in it. Inputs have areas of their own, as they may come at any time.
func (x *links) room(rows int) (err error) {
	areas, bytes := []*area(nil), int64(0)
	for _, l := range x.inputs {
		areas = append(areas, &area{width: l.width, until: len(x.hands), of: []*link{l}})
		bytes += int64(4 * l.width * rows)
	}
	for s, list := range x.hands {
		for _, l := range list {
			i := slices.IndexFunc(areas, func(a *area) bool { return a.width == l.width && a.until <= s })
			if i < 0 {
				i, areas = len(areas), append(areas, &area{width: l.width})
				bytes += int64(4 * l.width * rows)
			}
			areas[i].until = l.taken
			areas[i].of = append(areas[i].of, l)
		}
	}
	const pages = 64 << 10 // devices import whole pages only
	if x.memory, err = mem.Alloc((bytes + pages - 1) / pages * pages); err != nil {
		return err
	}
	all := floats(x.memory)
	for _, a := range areas {
		n := a.width * rows
		for _, l := range a.of {
			l.rows = all[:n:n]
		}
		all = all[n:]
	}
	return nil
}

func (x *links) free() error {
	if x == nil {
		return nil
	}
	return mem.Free(x.memory)
}

func floats(area []byte) []float32 {
	if len(area) == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(area))), len(area)/4)
}
