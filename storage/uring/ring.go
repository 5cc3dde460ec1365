// Package uring reads byte ranges of files into slabs: cached ranges from the page cache, others past it (O_DIRECT, and
// what other systems have of that), so that no model is in memory twice. It uses io_uring where the system has it, else
// a few goroutines, each in one read (pread). Bytes already in memory are copied, so that a caller need not know where
// a model lies.
//
// A Ring has one owner, the reader actor. Other packages decide what to read when, and which slab is free.
package uring

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/internal/system"
)

// Request asks for Length bytes of Source from Offset. They will lie at Into[Head:]; all of Into belongs to the ring
// until the completion with the same ID has been taken. A read past the page cache moves whole blocks of the disk:
// for it, Into must start at a multiple of the block size (a page always does), Head must be the position of Offset
// in its block (see HeadOf), and Into must reach to the end of the last block.
type Request struct {
	ID     uint64 // the caller's, given back as it is
	Source source.Source
	Offset int64
	Length int
	Into   []byte
	Head   int
}

// Block is a multiple of the block sizes of common disks, in bytes.
const Block = 4096

// Slack is the number of bytes by which Into should exceed Length: a direct read starts and ends at block borders.
const Slack = 2 * Block

// HeadOf returns the Head of a read from offset, if Into starts at a block.
func HeadOf(offset int64) int { return int(offset & (Block - 1)) }

// Completion is the result of a request.
type Completion struct {
	ID   uint64
	Data []byte // exactly the bytes asked for, a part of Into; nil after an error
	Err  error
}

// Ring runs reads. Open, Submit, Wait and Close must be called by one goroutine, which stays on one thread from Open
// to Close: the kernel accepts no other.
type Ring struct {
	reads    engine
	ops      []op
	free     []*op
	finished []*op // in the order in which they ended
	files    map[string]*file
	broken   error

	// resident reports whether the page cache holds n bytes of a file from an offset on, or nearly so.
	resident func(f *os.File, from int64, n int) bool
}

// engine starts reads and reports which have ended: io_uring, or goroutines.
type engine interface {
	start(*op)
	flush() error                 // makes started reads proceed without further calls
	next(wait bool) (*op, error)  // an ended read, or nil if there is none and wait is false
	register(memory []byte) error // memory that many reads will fill
	kind() string
	close() error // to be called when no read is under way
}

// op is one request under way. While an engine has it, only the engine touches n and err.
type op struct {
	index   int
	request Request
	file    *file
	direct  bool
	from    int64  // offset in the file of buf[0]
	buf     []byte // where the bytes go, a part of Into; in whole blocks if direct
	got     int    // bytes of buf that are there
	faults  uint64 // file.faults when the read began
	n       int    // result of the last read
	err     error
}

// Open makes a ring for up to depth requests at a time, and locks the goroutine to its thread until Close. It
// registers memory, such as an arena's, with the kernel if that allows it, which makes reads into it cheaper; memory
// may be nil.
func Open(depth int, memory []byte) (*Ring, error) {
	if err := checkDepth(depth); err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	reads, err := newKernelRing(depth)
	if err != nil {
		return newRing(depth, newPreads(depth)), nil // Probe says why
	}
	_ = reads.register(memory) // optional: often refused by the limit of locked memory
	return newRing(depth, reads), nil
}

// OpenPread is Open without io_uring.
func OpenPread(depth int) (*Ring, error) {
	if err := checkDepth(depth); err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	return newRing(depth, newPreads(depth)), nil
}

func checkDepth(depth int) error {
	if depth < 1 || depth > 4096 {
		return fmt.Errorf("ring of depth %d: want 1 to 4096", depth)
	}
	return nil
}

func newRing(depth int, reads engine) *Ring {
	r := &Ring{reads: reads, ops: make([]op, depth), files: make(map[string]*file), resident: system.Resident}
	r.free, r.finished = make([]*op, 0, depth), make([]*op, 0, depth)
	for i := range r.ops {
		r.ops[i].index = i
		r.free = append(r.free, &r.ops[i])
	}
	return r
}

// Probe reports whether reads will use io_uring; if not, detail says why, and advice what a person may do about it, ""
// if nothing.
func Probe() (ok bool, detail, advice string) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	reads, err := newKernelRing(1)
	if err != nil {
		return false, fmt.Sprintf("%v: reads use pread on %d goroutines instead", err, preadWorkers), howToAllow
	}
	if err := reads.close(); err != nil {
		return false, err.Error(), howToAllow
	}
	return true, reads.detail(), ""
}

// Kind returns "io_uring" or "pread".
func (r *Ring) Kind() string { return r.reads.kind() }

// Depth returns the number of requests that may be under way or have completions not yet taken.
func (r *Ring) Depth() int { return len(r.ops) }

// Submit starts requests. It fails as a whole if the ring has no room for all; an error of one request is in its
// completion.
func (r *Ring) Submit(requests []Request) error {
	if r.broken != nil {
		return r.broken
	}
	if len(requests) > len(r.free) {
		return fmt.Errorf("%d requests for a ring of depth %d with %d free: take completions first",
			len(requests), len(r.ops), len(r.free))
	}
	for _, request := range requests {
		o := r.free[len(r.free)-1]
		r.free = r.free[:len(r.free)-1]
		*o = op{index: o.index, request: request}
		switch err := r.plan(o); {
		case err != nil:
			o.err = err
			r.finished = append(r.finished, o)
		case o.file == nil: // in memory
			copy(o.buf, request.Source.Data[request.Offset:])
			r.finished = append(r.finished, o)
		default:
			r.reads.start(o)
		}
	}
	r.broken = r.reads.flush()
	return r.broken
}

// Wait fills out with completions: all that are there, and at least min, or as many as are under way if those are
// fewer. It returns their number.
func (r *Ring) Wait(min int, out []Completion) (int, error) {
	n := 0
	for n < len(out) && len(r.free) < len(r.ops) {
		if len(r.finished) == 0 {
			if r.broken != nil {
				return n, r.broken
			}
			o, err := r.reads.next(n < min)
			if err != nil {
				r.broken = err
				return n, err
			}
			if o == nil {
				return n, nil
			}
			if !r.settle(o) {
				r.reads.start(o)
				continue
			}
			r.finished = append(r.finished, o)
		}
		out[n] = r.finished[0].completion()
		r.free = append(r.free, r.finished[0])
		r.finished = r.finished[:copy(r.finished, r.finished[1:])]
		n++
	}
	if r.broken == nil {
		r.broken = r.reads.flush() // reads that settle started again
	}
	return n, r.broken
}

// Close waits for reads under way, so that the kernel writes to no slab afterwards, and closes all files.
func (r *Ring) Close() error {
	var errs []error
	last := make([]Completion, len(r.ops))
	for len(r.free) < len(r.ops) && r.broken == nil {
		if _, err := r.Wait(len(r.ops), last); err != nil {
			errs = append(errs, err)
		}
	}
	errs = append(errs, r.reads.close())
	for _, f := range r.files {
		errs = append(errs, f.close())
	}
	runtime.UnlockOSThread()
	return errors.Join(errs...)
}

// plan decides which bytes to read, and from which open file.
func (r *Ring) plan(o *op) error {
	q := &o.request
	end := q.Offset + int64(q.Length)
	switch {
	case q.Offset < 0 || q.Length < 1 || end < 0 || end > q.Source.Size:
		return fmt.Errorf("outside the %d bytes of the file", q.Source.Size)
	case q.Head < 0 || q.Head > len(q.Into) || len(q.Into)-q.Head < q.Length:
		return fmt.Errorf("the memory has only %d bytes from %d on", len(q.Into)-q.Head, q.Head)
	}
	o.from, o.buf = q.Offset, o.wanted()
	if q.Source.Path == "" {
		return nil
	}
	f, err := r.open(q.Source)
	if err != nil {
		return err
	}
	o.file = f
	if err := f.begin(o); err != nil {
		return err
	}
	before := int(q.Offset) & (f.block - 1) // bytes of the first block that nobody asked for
	if f.direct == nil || q.Head < before || !aligned(q.Into[q.Head-before:], f.block) {
		return nil
	}
	if f.cached.has(q.Offset, q.Length) && r.resident(f.plain, q.Offset, q.Length) {
		return nil
	}
	block, into := int64(f.block), q.Into[q.Head-before:]
	from := q.Offset - int64(before)
	if size := (end+block-1)&^(block-1) - from; size <= int64(len(into)) {
		o.direct, o.from, o.buf = true, from, into[:size]
	}
	return nil
}

// wanted returns the part of Into that the requested bytes will lie in.
func (o *op) wanted() []byte {
	head, end := o.request.Head, o.request.Head+o.request.Length
	return o.request.Into[head:end:end]
}

func (r *Ring) open(s source.Source) (*file, error) {
	if f, ok := r.files[s.Path]; ok {
		return f, nil
	}
	f, err := openFile(s)
	if err != nil {
		return nil, err
	}
	r.files[s.Path] = f
	return f, nil
}

// head returns the number of bytes of buf before the requested ones.
func (o *op) head() int { return int(o.request.Offset - o.from) }

// handle returns the open file that the op reads.
func (o *op) handle() *os.File {
	if o.direct {
		return o.file.direct
	}
	return o.file.plain
}

// rest returns the part of buf to read next; one system call moves less than 2 GiB.
func (o *op) rest() []byte { return o.buf[o.got:][:min(len(o.buf)-o.got, 1<<30)] }

// settle takes the result of a read, and reports whether the op has ended; if not, the rest must be read.
func (r *Ring) settle(o *op) bool {
	if o.err != nil {
		if !o.direct || !errors.Is(o.err, syscall.EINVAL) {
			return true
		}
		// The file system offers direct reads and yet refuses this one: take the page cache.
		o.direct, o.err, o.got = false, nil, 0
		o.from, o.buf = o.request.Offset, o.wanted()
		return false
	}
	before := o.got
	o.got += o.n
	if o.got >= o.head()+o.request.Length {
		return o.file.ended(o)
	}
	end := o.from + int64(o.got)
	if o.direct {
		o.got &^= o.file.block - 1 // a direct read goes on at a block's border
	}
	if o.got > before {
		return false
	}
	o.err = fmt.Errorf("the file ends at byte %d: it was truncated while in use, restore it and start again: %w",
		end, io.ErrUnexpectedEOF)
	return true
}

func (o *op) completion() Completion {
	q := &o.request
	if o.err != nil {
		return Completion{ID: q.ID, Err: fmt.Errorf("%s: bytes %d to %d: %w",
			q.Source.Name, q.Offset, uint64(q.Offset)+uint64(q.Length), o.err)}
	}
	return Completion{ID: q.ID, Data: o.wanted()}
}

// file is an open file, which the ring closes at its own Close. It is open twice: for reads through the page cache
// and, if possible, for direct reads.
type file struct {
	plain  *os.File
	direct *os.File // nil if the system offers no direct reads
	cached cached   // parts that were cached at opening; nil if direct is
	faults uint64   // number of reads that found the file changed
	block  int      // offsets, lengths and addresses of direct reads are multiples of it, a power of two
}

func openFile(s source.Source) (*file, error) {
	plain, info, err := safefile.Open(s.Path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Path, err)
	}
	if err := s.Check(info); err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	f := &file{plain: plain, block: 1}
	switch direct, block := system.OpenDirect(s.Path); {
	case direct == nil:
	case !usable(block):
		direct.Close()
	default:
		f.direct, f.block, f.cached = direct, block, lookup(plain, s.Size)
	}
	return f, nil
}

// begin refuses a read of a file that was found changed before, and has not been restored.
func (f *file) begin(o *op) error {
	o.faults = f.faults
	if f.faults == 0 {
		return nil
	}
	return f.unchanged(&o.request.Source)
}

// ended reports whether a read has ended; if not, it must be repeated. A read that was under way while another one
// found the file changed may have bytes from before the file was restored.
func (f *file) ended(o *op) bool {
	if o.err = f.unchanged(&o.request.Source); o.err != nil {
		f.faults++
		return true
	}
	if o.faults == f.faults {
		return true
	}
	o.faults, o.got = f.faults, 0
	return false
}

// unchanged fails if the file may have been written to since the model was opened: a write changes a file's time
// before its bytes.
func (f *file) unchanged(s *source.Source) error {
	if s.Info == nil {
		return nil
	}
	info, err := f.plain.Stat()
	if err != nil {
		return err
	}
	return s.Check(info)
}

func (f *file) close() error {
	if f.direct == nil {
		return f.plain.Close()
	}
	return errors.Join(f.direct.Close(), f.plain.Close())
}

func aligned(b []byte, block int) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))&uintptr(block-1) == 0
}

// usable reports whether direct reads with blocks of n bytes can be planned.
func usable(n int) bool { return n > 0 && n <= math.MaxUint16 && n&(n-1) == 0 }
