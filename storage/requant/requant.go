// Package requant writes a model again with its tensors in other types.
//
// A run converts the source piece by piece, on several threads, so that only a few pieces are in memory, however large
// the model is. The new file grows beside its final place, under the same name with ".partial" added, and is renamed
// when it is complete. Until then it begins with a journal in place of its header: nothing can take it for a model,
// and the next run with the same source, types and importance continues where this one ended. stages/model/ftype
// decides which types tensors get.
package requant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Job describes the model to write.
type Job struct {
	Source  *gguf.File
	Meta    *meta.Map     // of the new file
	Tensors []gguf.Tensor // of the new file, in its order: name, new type, shape; Source has one of each name and shape

	// Importance has weights for the columns of some tensors, by name: as many as a row has values, times the
	// matrices of a tensor of experts. A larger weight makes the rounding of its column count more.
	Importance map[string][]float32

	Replace  bool                    // an existing file at the path; if false, such a file is an error
	Threads  int                     // at least 1
	Progress func(done, total int64) // bytes of the new file, if not nil; one call at a time

	// Tests set these; zero stands for the constants below.
	open        func(path string) (disk, error)
	pieceValues int
	syncBytes   int64
}

// Suffix ends the name of a file that is incomplete.
const Suffix = ".partial"

const (
	pieceValues = 256 << 10 // values of a piece, about: a fraction of a second of work, a megabyte of memory
	syncBytes   = 64 << 20  // bytes written between two syncs: a crash of the machine costs about so many
)

// Run writes the file at path, and returns how many of its bytes an earlier run had written already. If it fails for
// an outside reason, such as a full disk, or because ctx ended, Run of the same job continues from there.
func (j *Job) Run(ctx context.Context, path string) (resumed int64, err error) {
	layout, err := gguf.Plan(j.Meta, j.Tensors)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	w, err := newWriter(j, layout)
	if err != nil {
		return 0, err
	}
	defer w.closeSources()
	partial := path + Suffix
	if w.out, err = j.openDisk(partial); err != nil {
		return 0, named(err)
	}
	if err = w.begin(partial); err == nil {
		resumed = w.saved - int64(len(layout.Head))
		err = w.finish(w.work(ctx, max(1, j.Threads)))
	}
	if err = errors.Join(err, w.out.Close()); err != nil {
		return resumed, named(err)
	}
	if err := safefile.Publish(partial, path, j.Replace); err != nil {
		return resumed, fmt.Errorf("%s: %w", path, err)
	}
	return resumed, nil
}

// named adds a file's name to an error of the system that lacks it.
func named(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return err
}

// writer is a running job.
type writer struct {
	job    *Job
	layout *gguf.Layout
	from   []*gguf.Tensor // by tensor of the layout
	parts  []part
	out    disk
	key    [keyBytes]byte

	mu       sync.Mutex
	next     cursor
	finished map[int64]int64 // written pieces beyond reached: their end by their begin
	reached  int64           // all before it is written

	saving sync.Mutex
	saved  int64 // offset recorded in the journal; guarded by saving
}

func newWriter(j *Job, layout *gguf.Layout) (*writer, error) {
	w := &writer{job: j, layout: layout, finished: map[int64]int64{}}
	w.next.values = cmp.Or(j.pieceValues, pieceValues)
	for i := range layout.Tensors {
		t := &layout.Tensors[i]
		from, err := source(j.Source, t)
		if err != nil {
			return nil, err
		}
		if have, want := len(j.Importance[t.Name]), t.Shape[0]*matrices(t); have != 0 && have != want {
			return nil, fmt.Errorf("tensor %q: importance of %d columns, want %d: it was made for another model",
				t.Name, have, want)
		}
		w.from = append(w.from, from)
	}
	if len(w.from) == 0 {
		return nil, fmt.Errorf("%s: it has no tensors", j.Source.Name)
	}
	return w, w.openSources()
}

// work runs workers until all pieces are written, and returns the first error.
func (w *writer) work(ctx context.Context, threads int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var workers sync.WaitGroup
	for range threads {
		workers.Go(func() {
			var b buffers
			for ctx.Err() == nil {
				p, ok := w.take()
				if !ok {
					return
				}
				err := w.write(&p, &b)
				if err == nil {
					err = w.done(&p)
				}
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// take returns the next piece; false if there is none.
func (w *writer) take() (piece, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.next.piece(w.layout)
}

// done records that a piece is written, and saves the journal from time to time.
func (w *writer) done(p *piece) error {
	w.mu.Lock()
	w.finished[p.begin] = p.end
	for end, ok := w.finished[w.reached]; ok; end, ok = w.finished[w.reached] {
		delete(w.finished, w.reached)
		w.reached = end
	}
	reached := w.reached
	if w.job.Progress != nil {
		w.job.Progress(reached, w.layout.Size)
	}
	w.mu.Unlock()
	if !w.saving.TryLock() { // another worker is saving
		return nil
	}
	defer w.saving.Unlock()
	if reached-w.saved < cmp.Or(w.job.syncBytes, syncBytes) {
		return nil
	}
	return w.save(reached)
}
