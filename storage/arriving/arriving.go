package arriving

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/internal/source"
)

const (
	piece   = 1 << 20 // bytes that are asked for at once
	atOnce  = 8       // pieces that are under way
	tries   = 8       // with a piece, until all is given up
	pause   = 50 * time.Millisecond
	longest = 2 * time.Second // pause before the next try

	private     = 0o600
	mostInParts = 1 << 50
)

// Fetch reads len(into) bytes of a part from an offset on. It is called by several goroutines.
type Fetch func(ctx context.Context, part int, into []byte, from int64) error

// ErrClosed is the error of reads that wait when the files are closed.
var ErrClosed = errors.New("the model was closed before it had come")

// Files are the files of one model.
type Files struct {
	fetch  Fetch
	check  func() error
	stop   context.CancelCauseFunc
	forget func() bool // the context
	work   sync.WaitGroup
	parts  []*Part

	mu     sync.Mutex
	news   sync.Cond // a piece has come, or none will
	wanted []spot    // asked for before their turn, the last first
	next   spot      // the first that nobody has begun, in turn
	left   int       // that are not there
	whole  bool
	err    error // why no more come
}

// spot is a piece of a part.
type spot struct{ part, index int }

// Part is one of the files. It implements source.Arriving.
type Part struct {
	of    *Files
	index int
	size  int64
	file  *os.File
	state []state // of its pieces
}

type state byte

const (
	missing state = iota
	coming
	here
)

var _ source.Arriving = (*Part)(nil)

// Begin makes files of these sizes at paths, where there are none, and has their bytes come until ctx ends. check is
// called when all are there, before the last of them can be read: if it fails, so do reads.
func Begin(ctx context.Context, paths []string, sizes []int64, fetch Fetch, check func() error) (_ *Files, err error) {
	f := &Files{fetch: fetch, check: check}
	f.news.L = &f.mu
	ctx, f.stop = context.WithCancelCause(ctx)
	f.forget = context.AfterFunc(ctx, func() { f.fail(ErrClosed) })
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	for i, path := range paths {
		if sizes[i] < 1 || sizes[i] > mostInParts {
			return nil, fmt.Errorf("%s: %d bytes of it are to come", path, sizes[i])
		}
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, private)
		if err != nil {
			return nil, err
		}
		n := int((sizes[i] + piece - 1) / piece)
		f.parts = append(f.parts, &Part{of: f, index: i, size: sizes[i], file: file, state: make([]state, n)})
		f.left += n
		if err := file.Truncate(sizes[i]); err != nil {
			return nil, err
		}
	}
	for range min(atOnce, f.left) {
		f.work.Go(func() { f.run(ctx) })
	}
	return f, nil
}

// Part is one of the files, from 0 on.
func (f *Files) Part(i int) *Part { return f.parts[i] }

// Wait waits until all bytes are there, or none come any more.
func (f *Files) Wait() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !f.whole && f.err == nil {
		f.news.Wait()
	}
	return f.err
}

// Err is why no more come; nil: they do, or are all there.
func (f *Files) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Sync returns when the drive has what has come.
func (f *Files) Sync() error {
	var errs []error
	for _, p := range f.parts {
		errs = append(errs, p.file.Sync())
	}
	return errors.Join(errs...)
}

// Stop ends what comes: reads that wait for it fail with ErrClosed.
func (f *Files) Stop() {
	f.forget()
	f.fail(ErrClosed)
	f.work.Wait()
}

// Close is Stop, and closes the files. No read may begin any more.
func (f *Files) Close() error {
	f.Stop()
	var errs []error
	for _, p := range f.parts {
		errs = append(errs, p.file.Close())
	}
	return errors.Join(errs...)
}

// fail has nothing more come, unless all has.
func (f *Files) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil && !f.whole {
		f.err = err
	}
	f.stop(err)
	f.news.Broadcast()
}

// run brings one piece after the other.
func (f *Files) run(ctx context.Context) {
	buffer := make([]byte, piece)
	for {
		at, ok := f.take()
		if !ok {
			return
		}
		if err := f.bring(ctx, at, buffer); err != nil {
			if ctx.Err() != nil {
				err = ErrClosed
			}
			f.fail(err)
			return
		}
	}
}

// take returns the piece that comes next; false: there is none to begin.
func (f *Files) take() (spot, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.err == nil {
		var at spot
		switch n := len(f.wanted); {
		case n > 0:
			at, f.wanted = f.wanted[n-1], f.wanted[:n-1]
		case f.next.part == len(f.parts):
			return spot{}, false
		default:
			at = f.next
			if f.next.index++; f.next.index == len(f.parts[at.part].state) {
				f.next = spot{part: at.part + 1}
			}
		}
		if s := &f.parts[at.part].state[at.index]; *s == missing {
			*s = coming
			return at, true
		}
	}
	return spot{}, false
}

// bring fetches a piece and writes it, with a few more tries where that fails.
func (f *Files) bring(ctx context.Context, at spot, buffer []byte) error {
	p, from := f.parts[at.part], int64(at.index)*piece
	data := buffer[:min(piece, p.size-from)]
	err := f.fetch(ctx, at.part, data, from)
	for n := 1; n < tries && err != nil; n++ {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(pause<<n, longest)):
		}
		err = f.fetch(ctx, at.part, data, from)
	}
	if err != nil {
		return fmt.Errorf("bytes from %d on: %w", from, err)
	}
	if _, err := p.file.WriteAt(data, from); err != nil {
		return err
	}
	return f.came(p, at.index)
}

// came says that a piece is there. If it is the last one, all are checked first.
func (f *Files) came(p *Part, index int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 1 {
		f.mu.Unlock()
		err := f.check()
		f.mu.Lock()
		if err != nil {
			return err
		}
	}
	p.state[index] = here
	f.left--
	f.whole = f.left == 0
	f.news.Broadcast()
	return nil
}

// Here implements source.Remote.
func (p *Part) Here() bool {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	return p.of.whole
}

// Await implements source.Arriving.
func (p *Part) Await(from, n int64) error {
	if from < 0 || n < 0 || n > p.size || from > p.size-n {
		return fmt.Errorf("%d bytes from %d on are outside the %d bytes of the file: %w", n, from, p.size, io.ErrUnexpectedEOF)
	}
	if n == 0 {
		return nil
	}
	f, first, last := p.of, int(from/piece), int((from+n-1)/piece)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := last; i >= first; i-- { // the first is taken first
		if p.state[i] == missing {
			f.wanted = append(f.wanted, spot{p.index, i})
		}
	}
	for i := first; i <= last; i++ {
		for p.state[i] != here {
			if f.err != nil {
				return f.err
			}
			f.news.Wait()
		}
	}
	return nil
}

// ReadAt waits for the bytes, and reads them from the file.
func (p *Part) ReadAt(b []byte, from int64) (int, error) {
	if err := p.Await(from, int64(len(b))); err != nil {
		return 0, err
	}
	return p.file.ReadAt(b, from)
}
