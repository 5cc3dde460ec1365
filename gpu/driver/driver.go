package driver

import (
	"errors"
	"time"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Errors that drivers wrap.
var (
	ErrTimeout = errors.New("not yet")                 // of Timeline.Wait
	ErrLost    = errors.New("the device is lost")      // it will not end any work
	ErrScarce  = errors.New("there is no such memory") // of an allocation
)

// Facts are what an opened device says of itself.
type Facts struct {
	API      string // for people: Vulkan
	Name     string
	Software bool   // a processor that plays the device: it has no bus, draws no screen, and other things to do
	Free     uint64 // bytes of its own memory that nothing took when it was opened
	Halves   bool   // attention over caches of halves rounds queries and weights to halves, too

	Tick               float64 // nanoseconds of a timestamp's unit
	Stamps, CopyStamps uint32  // bits of a timestamp that change, by queue; 0: there are none
}

// Memory says where a buffer lies.
type Memory uint8

// Stepwise and Staging are mapped: Buffer.Bytes is their memory.
const (
	Local    Memory = iota // the device's own memory
	Stepwise               // written by the host, read by kernels: the device's own memory if the host reaches it
	Staging                // the host's memory, cached: what is copied from and to, and read back
)

// Buffer is a range of memory that kernels reach by its address. It begins at a multiple of 256 bytes.
type Buffer struct {
	Address uint64
	Size    uint64
	Bytes   []byte // of mapped memory, else nil
	Own     any    // the driver's
}

// Queue is one of a device's. Both run beside each other where the device can.
type Queue uint8

// Queues.
const (
	Compute Queue = iota
	Copies        // of recordings that have nothing but copies and timestamps
)

// Device is an opened device. Its methods may be called from any goroutine, but Submit, and what a Recording has, by
// one at a time.
type Device interface {
	Facts() *Facts
	Kernels() Kernels

	// Allocate makes a buffer whose contents are not defined.
	Allocate(m Memory, size uint64) (*Buffer, error)
	// Import makes memory of the program a buffer that is copied from, without a copy of its own. The memory stays where
	// it is until the buffer is freed. An error says that the device copies from no such memory.
	Import(memory []byte) (*Buffer, error)
	// Free gives memory back that no work under way uses. A nil buffer is none.
	Free(all ...*Buffer)

	// Record begins a recording with room for some timestamps.
	Record(q Queue, stamps int) (Recording, error)
	// Submit queues recordings of one queue, to begin when timelines have come to waits, and raises signal at their end.
	Submit(all []Recording, waits []Point, signal Point) error
	// Timeline makes a counter, which begins at 0.
	Timeline() (Timeline, error)

	// Calibrate reads the device's clock, between two times of the host; false: it cannot.
	Calibrate() (tick uint64, from, to time.Time, ok bool)
	// Patience is how long nothing may end of all that the device was given, before it counts as hung.
	Patience() time.Duration
	// Hold has whatever is freed from now on stay until the device has come to rest, in Close: it hangs, or was lost.
	Hold()
	// Close waits for the device and closes it, once, within its patience. keep says that what it compiled is kept for the
	// next time, where it can be.
	Close(keep bool) error
}

// Point is a value of a timeline.
type Point struct {
	Timeline Timeline
	Value    uint64
}

// Timeline counts what has ended.
type Timeline interface {
	// Wait blocks until the timeline has come to a value; ErrTimeout after limit.
	Wait(value uint64, limit time.Duration) error
	Value() (uint64, error)
	Close()
}

// Recording is a list of commands that is submitted any number of times, also while it runs.
type Recording interface {
	// Barrier has later kernels wait for earlier ones and see what they wrote.
	Barrier()
	// BarrierAll is Barrier for copies, too.
	BarrierAll()
	// BarrierToHost has the host see what was written, when the recording has ended.
	BarrierToHost()
	// Copy copies n bytes between buffers.
	Copy(to *Buffer, at uint64, from *Buffer, offset, n uint64)
	// Fill sets a buffer, whose size is a multiple of four, to one word.
	Fill(to *Buffer, word uint32)
	// Stamp notes the time when all before it is done.
	Stamp()
	// End ends the list.
	End() error

	// Marks is how many timestamps the recording notes. Ticks appends them, of one that has ended, in ticks of the
	// device's clock. ResetStamps prepares them for another run.
	Marks() int
	Ticks(to []uint64) ([]uint64, error)
	ResetStamps()
	// Close frees the recording, which does not run.
	Close()
}

// Kernels are a device's kernels, and its formats of weights. Several goroutines may launch, each into a recording of
// its own: that compiles what was not launched before.
type Kernels interface {
	kernel.Table
	// Launch adds a kernel to a recording.
	Launch(r Recording, l kernel.Launch) error
	// PeakOps is the operations of a round of kernel.Peak.
	PeakOps(halves bool) float64

	// UploadBytes is the size of a row of weights as kernel.Pack takes it: the file's, or what Recode makes of it.
	UploadBytes(t quant.Type, cols int) (int, error)
	// Recodes says whether Recode changes rows of a type.
	Recodes(t quant.Type) bool
	// Recode makes of whole rows of a file what Pack takes, in to, which has UploadBytes for each.
	Recode(t quant.Type, cols int, to, file []byte) error

	// Tune measures which kernels of equal bits are faster for attention of some shapes, where that was not measured
	// before. What cannot be measured stays as it is.
	Tune(shapes []kernel.Heads, on Bench)
}

// Bench measures on a device that computes nothing else.
type Bench interface {
	// Take allocates memory, until Free gives back all that was taken.
	Take(m Memory, size uint64) (*Buffer, error)
	Free()
	// Once runs what is recorded, and waits.
	Once(record func(Recording) error) error
	// Pass is how long what is recorded takes, by the device's own clock; false: it has none.
	Pass(record func(Recording) error) (time.Duration, bool, error)
}
