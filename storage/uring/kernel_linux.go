package uring

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"unsafe"

	sys "github.com/iceber/iouring-go/syscall"
	"golang.org/x/sys/unix"
)

// Set-up flags newer than the binding, of linux/io_uring.h. With both, the kernel completes reads only while the one
// thread that submits them waits for completions. That takes a third of the context switches, but no other thread may
// enter the ring.
const (
	setupSingleIssuer = 1 << 12
	setupDeferTaskrun = 1 << 13
)

// Limits of reads from the page cache, whose bytes a processor must copy (those of direct reads are moved by the
// drive). Reads of at least worthWaking bytes are copied by the kernel's worker threads, so that several copy at once
// and the ring's thread stays free.
const (
	registerWorkers = 19        // IORING_REGISTER_IOWQ_MAX_WORKERS
	worthWaking     = 128 << 10 // bytes
	mostCopiers     = 8
)

// copiers returns the number of kernel threads that may copy: half of the processors, since the others compute with
// the bytes.
func copiers() int { return max(1, min(runtime.NumCPU()/2, mostCopiers)) }

// mostRegistered is the kernel's limit of a registered buffer, in bytes.
const mostRegistered = 1 << 30

// kernelRing is the io_uring engine. The submission and completion queues lie in memory shared with the kernel: the
// engine writes the tail of the first and the head of the second, the kernel writes the others.
type kernelRing struct {
	fd       int
	deferred bool // both flags were accepted

	queues, entries []byte  // mappings of the rings and of the submission queue's entries
	head, tail      *uint32 // of the submission queue
	mask            uint32
	slots           []uint32 // submission queue: indexes into sqes
	sqes            []sys.SubmissionQueueEntry64

	doneHead, doneTail *uint32 // of the completion queue
	doneMask           uint32
	cqes               []sys.CompletionQueueEvent16

	ops    []*op  // under way, by index
	memory []byte // registered as buffer 0, or nil
}

// howToAllow says what gives a process io_uring.
const howToAllow = "Linux 5.6 or later; sysctl kernel.io_uring_disabled=0; " +
	"containers: allow it in the seccomp profile"

func newKernelRing(depth int) (*kernelRing, error) {
	k := &kernelRing{deferred: true, ops: make([]*op, depth)}
	params := sys.IOURingParams{Flags: setupSingleIssuer | setupDeferTaskrun}
	fd, err := sys.IOURingSetup(uint(depth), &params)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.1
		k.deferred = false
		params = sys.IOURingParams{}
		fd, err = sys.IOURingSetup(uint(depth), &params)
	}
	if err != nil {
		return nil, fmt.Errorf("io_uring is not available: %w%s", err, disabledHint())
	}
	k.fd = fd
	// The first number limits the workers for reads of regular files; the second, 0, leaves the limit of the others.
	// Linux before 5.15 refuses the call and starts more workers.
	workers := [2]uint32{uint32(copiers())}
	_ = sys.IOURingRegister(fd, registerWorkers, unsafe.Pointer(&workers), 2)
	if params.Features&sys.IORING_FEAT_SINGLE_MMAP == 0 || params.Features&sys.IORING_FEAT_RW_CUR_POS == 0 {
		return nil, errors.Join(errors.New("io_uring is too old here: want Linux 5.6 or newer"), k.close())
	}
	if err := k.mapQueues(&params); err != nil {
		return nil, errors.Join(err, k.close())
	}
	if err := k.enter(0, sys.IORING_ENTER_FLAGS_GETEVENTS); err != nil { // a container may forbid io_uring_enter only
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

// disabledHint names the setting that disables io_uring, if it is not at its default.
func disabledHint() string {
	const setting = "/proc/sys/kernel/io_uring_disabled"
	b, err := os.ReadFile(setting)
	if v := strings.TrimSpace(string(b)); err == nil && v != "0" {
		return fmt.Sprintf(" (%s is %s)", setting, v)
	}
	return ""
}

func (k *kernelRing) mapQueues(p *sys.IOURingParams) (err error) {
	size := max(p.SQOffset.Array+p.SQEntries*4,
		p.CQOffset.Cqes+p.CQEntries*uint32(unsafe.Sizeof(sys.CompletionQueueEvent16{})))
	k.queues, err = k.mapShared(sys.IORING_OFF_SQ_RING, int(size))
	if err != nil {
		return err
	}
	k.entries, err = k.mapShared(sys.IORING_OFF_SQES,
		int(p.SQEntries)*int(unsafe.Sizeof(sys.SubmissionQueueEntry64{})))
	if err != nil {
		return err
	}
	base := unsafe.Pointer(unsafe.SliceData(k.queues))
	word := func(offset uint32) *uint32 { return (*uint32)(unsafe.Add(base, offset)) }
	k.head, k.tail, k.mask = word(p.SQOffset.Head), word(p.SQOffset.Tail), *word(p.SQOffset.RingMask)
	k.slots = unsafe.Slice(word(p.SQOffset.Array), p.SQEntries)
	k.sqes = unsafe.Slice((*sys.SubmissionQueueEntry64)(unsafe.Pointer(unsafe.SliceData(k.entries))), p.SQEntries)
	k.doneHead, k.doneTail, k.doneMask = word(p.CQOffset.Head), word(p.CQOffset.Tail), *word(p.CQOffset.RingMask)
	k.cqes = unsafe.Slice((*sys.CompletionQueueEvent16)(unsafe.Add(base, p.CQOffset.Cqes)), p.CQEntries)
	return nil
}

func (k *kernelRing) mapShared(offset uint64, size int) ([]byte, error) {
	b, err := unix.Mmap(k.fd, int64(offset), size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("io_uring: cannot map its queues: %w", err)
	}
	return b, nil
}

func (k *kernelRing) kind() string { return "io_uring" }

func (k *kernelRing) detail() string {
	if k.deferred {
		return "io_uring with single issuer and deferred task work"
	}
	return "io_uring without deferred task work, which Linux 6.1 brings"
}

func (k *kernelRing) register(memory []byte) error {
	if len(memory) == 0 || len(memory) > mostRegistered {
		return nil
	}
	vector := unix.Iovec{Base: unsafe.SliceData(memory)}
	vector.SetLen(len(memory))
	if err := sys.IOURingRegister(k.fd, sys.IORING_REGISTER_BUFFERS, unsafe.Pointer(&vector), 1); err != nil {
		return err
	}
	k.memory = memory
	return nil
}

// registered reports whether b lies inside the registered memory.
func (k *kernelRing) registered(b []byte) bool {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(k.memory)))
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b))) - start
	return at < uintptr(len(k.memory)) && uintptr(len(b)) <= uintptr(len(k.memory))-at
}

// start puts a read into the submission queue. The queue has room: it is as long as the ring is deep, and each op is
// under way once.
func (k *kernelRing) start(o *op) {
	tail := *k.tail // nobody else writes it
	slot := tail & k.mask
	b, code := o.rest(), sys.IORING_OP_READ
	if k.registered(b) {
		code = sys.IORING_OP_READ_FIXED
	}
	e := &k.sqes[slot]
	e.Reset() // preparing leaves other fields as the last user of the slot had them
	e.PrepOperation(code, int32(o.handle().Fd()), uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), uint32(len(b)),
		uint64(o.from)+uint64(o.got))
	if !o.direct && len(b) >= worthWaking {
		e.SetFlags(sys.IOSQE_FLAGS_ASYNC)
	}
	e.SetUserData(uint64(o.index))
	k.ops[o.index] = o // keeps the buffer alive while the kernel writes to it
	k.slots[slot] = slot
	atomic.StoreUint32(k.tail, tail+1)
}

func (k *kernelRing) flush() error {
	if *k.tail == atomic.LoadUint32(k.head) {
		return nil
	}
	return k.enter(0, 0)
}

// enter submits the queue and waits for least completions. If interrupted, it may have submitted a part: the rest is
// always the distance between head and tail.
func (k *kernelRing) enter(least, flags uint32) error {
	for {
		waiting := *k.tail - atomic.LoadUint32(k.head)
		n, err := sys.IOURingEnter(k.fd, waiting, least, flags, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EEXIST):
			return fmt.Errorf("io_uring: entered from another thread than it was made on: %w", err)
		case err != nil:
			return fmt.Errorf("io_uring: %w", err)
		case uint32(n) == waiting:
			return nil
		}
		if least > 0 && atomic.LoadUint32(k.doneTail) != *k.doneHead {
			return nil
		}
	}
}

func (k *kernelRing) next(wait bool) (*op, error) {
	head := *k.doneHead // nobody else writes it
	for entered := false; atomic.LoadUint32(k.doneTail) == head; entered = true {
		if entered && !wait {
			return nil, nil
		}
		least := uint32(0)
		if wait {
			least = 1
		}
		if err := k.enter(least, sys.IORING_ENTER_FLAGS_GETEVENTS); err != nil {
			return nil, err
		}
	}
	done := &k.cqes[head&k.doneMask]
	o, result := k.ops[done.UserData()], done.Result()
	atomic.StoreUint32(k.doneHead, head+1)
	switch err := unix.Errno(-result); {
	case result >= 0:
		o.n = int(result)
	case err == unix.EINTR || err == unix.EAGAIN: // nothing was read, and nothing is wrong
		k.start(o)
		return k.next(wait)
	default:
		o.n, o.err = 0, err
	}
	k.ops[o.index] = nil
	return o, nil
}

func (k *kernelRing) close() error {
	var errs []error
	for _, b := range [][]byte{k.queues, k.entries} {
		if b != nil {
			errs = append(errs, unix.Munmap(b))
		}
	}
	return errors.Join(append(errs, unix.Close(k.fd))...)
}
