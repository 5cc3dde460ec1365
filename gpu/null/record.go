package null

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
)

// command is a part of a recording: a copy, a fill, a kernel, a barrier or a timestamp.
type command struct {
	name    string // of a copy, a fill or a kernel
	kernel  bool
	barrier barrier
	stamp   int // 1 + number of a timestamp; 0: it is none
	uses    kernel.Uses
	run     func(x *access)
}

// barrier says which commands wait for which.
type barrier uint8

const (
	none    barrier = iota
	kernels         // kernels for kernels
	all             // copies, too
)

// recording is a list of commands.
type recording struct {
	d        *Device
	queue    driver.Queue
	room     int
	ended    bool
	launched bool // it has a kernel
	commands []command
	ticks    []uint64 // of its last run
	marks    int
}

// Record implements driver.Device.
func (d *Device) Record(q driver.Queue, stamps int) (driver.Recording, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost != nil {
		return nil, d.lost
	}
	return &recording{d: d, queue: q, room: stamps, ticks: make([]uint64, stamps)}, nil
}

func (r *recording) Barrier() {
	if r.launched {
		r.d.mu.Lock()
		r.d.barriers++
		dropped := r.d.barriers == r.d.options.Drop
		r.d.mu.Unlock()
		if dropped {
			return
		}
	}
	r.commands = append(r.commands, command{barrier: kernels})
}

func (r *recording) BarrierAll() { r.commands = append(r.commands, command{barrier: all}) }

// BarrierToHost does nothing: the host shares the memory.
func (r *recording) BarrierToHost() {}

func (r *recording) Copy(to *driver.Buffer, at uint64, from *driver.Buffer, offset, n uint64) {
	r.commands = append(r.commands, command{name: "copy", run: func(x *access) {
		copy(view[byte](x, to.Address+at, int(n), true), view[byte](x, from.Address+offset, int(n), false))
	}})
}

func (r *recording) Fill(to *driver.Buffer, word uint32) {
	r.commands = append(r.commands, command{name: "fill", run: func(x *access) {
		for i, v := 0, view[uint32](x, to.Address, int(to.Size/4), true); i < len(v); i++ {
			v[i] = word
		}
	}})
}

func (r *recording) Stamp() {
	r.marks++
	r.commands = append(r.commands, command{stamp: r.marks})
}

func (r *recording) End() error {
	if r.marks > r.room {
		return fmt.Errorf("null: %d timestamps in a recording that has room for %d", r.marks, r.room)
	}
	r.ended = true
	return nil
}

func (r *recording) Marks() int { return r.marks }

func (r *recording) Ticks(to []uint64) ([]uint64, error) {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	return append(to, r.ticks[:r.marks]...), nil
}

func (r *recording) ResetStamps() {}

func (r *recording) Close() {}

// launch adds a kernel.
func (r *recording) launch(name string, uses kernel.Uses, loop func(x *access)) error {
	if r.queue != driver.Compute {
		return errors.New("null: a kernel on the queue of copies")
	}
	r.launched = true
	r.commands = append(r.commands, command{name: name, kernel: true, uses: uses, run: loop})
	return nil
}
