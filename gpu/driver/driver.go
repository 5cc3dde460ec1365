package driver

import (
	"errors"
	"time"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Errors that drivers wrap.
var (
	ErrTimeout = errors.New("not yet")                 // Timeline.Wait came to its limit
	ErrLost    = errors.New("the device is lost")      // no work that it was given will end
	ErrScarce  = errors.New("there is no such memory") // no memory of the kind that was asked for is left
)

// Facts are the properties of an opened device, as its API reports them.
type Facts struct {
	API      string // for people: Vulkan
	Name     string
	Driver   string // its name and version: it compiles kernels, so that bits may depend on it
	Software bool   // the CPU emulates the device: there is no bus and no screen, and the cores have other work
	Free     uint64 // bytes of its own memory that were free when it was opened
	Halves   bool   // attention over f16 caches rounds queries and attention weights to half precision, too

	Tick               float64 // nanoseconds per unit of a timestamp
	Stamps, CopyStamps uint32  // valid bits of a timestamp on the queue Compute, and on Copies; 0: it has none
}

// Memory is a kind of memory: where a buffer lies, and whether the host reaches it.
type Memory uint8

// Kinds of memory. Stepwise and Staging are mapped: the host reads and writes them by Buffer.Bytes.
const (
	Local    Memory = iota // the device's own memory
	Stepwise               // written by the host, read by kernels: the device's own memory if the host reaches it
	Staging                // the host's memory, cached: the source and target of copies, and what the host reads back
)

// Buffer is a range of memory that kernels reach by its address. It begins at a multiple of 256 bytes.
type Buffer struct {
	Address uint64
	Size    uint64
	Bytes   []byte // of mapped memory, else nil
	Own     any    // what the driver keeps of it
}

// Queue names one of a device's two queues, which run at the same time where the device can.
type Queue uint8

// Queues.
const (
	Compute Queue = iota
	Copies        // for recordings of nothing but copies and timestamps
)

// Device is an opened device. Its methods may be called from any goroutine, but no two calls of Submit, or of methods
// of one Recording, at a time.
type Device interface {
	Facts() *Facts
	Kernels() Kernels

	// Allocate makes a buffer whose contents are not defined.
	Allocate(m Memory, size uint64) (*Buffer, error)
	// Import makes a buffer of the program's memory, without copying it, as a source and target of copies. The memory
	// must stay where it is until the buffer is freed. The error says that the device cannot copy such memory.
	Import(memory []byte) (*Buffer, error)
	// Free frees buffers that no work under way uses. Nil buffers are skipped.
	Free(all ...*Buffer)

	// Record begins a recording for a queue, with room for a number of timestamps.
	Record(q Queue, stamps int) (Recording, error)
	// Submit queues recordings of one queue. They begin when the timelines of waits have come to their values; at their
	// end, the timeline of signal is raised to its value.
	Submit(all []Recording, waits []Point, signal Point) error
	// Timeline makes a counter, which begins at 0.
	Timeline() (Timeline, error)

	// Calibrate reads the device's clock: it showed tick between the host's times from and to. ok is false if the
	// device cannot be asked.
	Calibrate() (tick uint64, from, to time.Time, ok bool)
	// Patience is how long the device may go without ending any of the work that it was given, before it counts as
	// hung.
	Patience() time.Duration
	// Hold makes every Free from now on wait for Close: the device hangs or was lost, and may still use the memory.
	Hold()
	// Close waits until the device is idle, for Patience at most, and closes it; it is called once. With keep, a driver
	// that can keeps its compiled kernels for the next start.
	Close(keep bool) error
}

// Reacher is a Device whose kernels reach memory of other cards.
type Reacher interface {
	// Reach makes a buffer of another device's, which kernels of this one then read and write. It is freed before the
	// other one. The error says that this card does not reach that one.
	Reach(other Device, b *Buffer) (*Buffer, error)
}

// Point is a value of a timeline.
type Point struct {
	Timeline Timeline
	Value    uint64
}

// Timeline is a counter that a queue raises when work ends, and that other queues and the host wait for.
type Timeline interface {
	// Wait blocks until the timeline has come to a value; it returns ErrTimeout after limit.
	Wait(value uint64, limit time.Duration) error
	Value() (uint64, error)
	Close()
}

// Preparer is a Recording that has work to do before it is submitted, if other cards wait for it.
type Preparer interface {
	// Prepare does what Submit would do first. It takes long, and may be called more than once.
	Prepare() error
}

// Recording is a list of commands. It may be submitted any number of times, also while it runs.
type Recording interface {
	// Barrier has later kernels wait for earlier ones and see what they wrote.
	Barrier()
	// BarrierAll is Barrier for copies, too.
	BarrierAll()
	// BarrierToHost makes what was written visible to the host once the recording has ended.
	BarrierToHost()
	// Copy copies n bytes between buffers.
	Copy(to *Buffer, at uint64, from *Buffer, offset, n uint64)
	// Fill sets a buffer, whose size is a multiple of four, to one word.
	Fill(to *Buffer, word uint32)
	// Stamp takes a timestamp when all commands before it are done.
	Stamp()
	// End ends the list.
	End() error

	// Marks is the number of the recording's timestamps. After a run has ended, Ticks appends them, in ticks of the
	// device's clock, and ResetStamps clears them for another run.
	Marks() int
	Ticks(to []uint64) ([]uint64, error)
	ResetStamps()
	// Close frees the recording. It must not be running.
	Close()
}

// Kernels are a device's kernels, and its formats of weights. Several goroutines may call Launch, each with a recording
// of its own. The first launch of a kernel compiles it.
type Kernels interface {
	kernel.Table
	// Launch adds a kernel to a recording.
	Launch(r Recording, l kernel.Launch) error
	// PeakOps is the number of arithmetic operations in one round of kernel.Peak.
	PeakOps(halves bool) float64

	// UploadBytes is the size of a row of cols weights in bytes, as kernel.Pack takes it: as in the file, or as Recode
	// converts it.
	UploadBytes(t quant.Type, cols int) (int, error)
	// Recodes says whether Recode changes rows of a type.
	Recodes(t quant.Type) bool
	// Recode converts whole rows of a file to the form that Pack takes. to has UploadBytes for each row.
	Recode(t quant.Type, cols int, to, file []byte) error

	// Tune chooses, for each shape of attention, the fastest of the kernels that give equal bits. It measures shapes
	// that were not measured before; where that fails, the choice stays as it is.
	Tune(shapes []kernel.Heads, on Bench)
}

// Bench runs and times recordings on a device that computes nothing else meanwhile.
type Bench interface {
	// Take allocates a buffer. Free frees all buffers that were taken.
	Take(m Memory, size uint64) (*Buffer, error)
	Free()
	// Once runs the commands that record adds to a recording, and waits for their end.
	Once(record func(Recording) error) error
	// Pass is how long the commands that record adds take by the device's clock; false: it has none.
	Pass(record func(Recording) error) (time.Duration, bool, error)
}
