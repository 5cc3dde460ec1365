package actors

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/stages/kv"
	"github.com/sluice-ai/sluice/storage/kvfiles"
	"github.com/sluice-ai/sluice/storage/sealed"
)

// Kept says where cached blocks of a model are kept on disk, so that they outlive the process.
type Kept struct {
	Folder *kvfiles.Folder // nil: nowhere
	// Weights tells the model's weights from all others; "": they are not known, and no session is saved.
	Weights string
	// Content tells them from others alike on all machines; "": no answer goes on at another one.
	Content string
	Build   string      // tells this program's build from those that may compute otherwise
	Key     *sealed.Key // by which saved sessions are encrypted; nil: they are not. The folder has its own
}

// bytes is how much the files may take.
func (k *Kept) bytes() int64 {
	if k.Folder == nil {
		return 0
	}
	return k.Folder.Most()
}

// kept is the part of cacheMemory that is on disk.
type kept struct {
	shelf   *kvfiles.Shelf // nil: there is none
	log     zerolog.Logger
	staging []byte    // on the way from and to files; nil until the first block comes
	failing bool      // the log has it
	unfit   error     // why nothing was written last
	until   time.Time // when it is tried again
}

// unfitFor is how long nothing is written after a write failed: each costs a copy from the device.
const unfitFor = 10 * time.Second

// movedAtOnce is how many files are read or written at a time. Drives read several sooner than one after the other.
const movedAtOnce = 8

// known lists the blocks that there are files of.
func (k *kept) known() (all []kv.Kept) {
	for x := range k.shelf.Scan(now()) {
		text := &kv.Text{Key: kv.Key(x.Key), Parent: kv.Key(x.Parent), Salt: x.Salt, Tokens: x.Tokens, Before: x.Before}
		all = append(all, kv.Kept{Text: text, Class: x.Class, Used: x.Used.UnixNano()})
	}
	return all
}

// free gives back the staging memory and the shelf.
func (k *kept) free() (err error) {
	if k.shelf != nil {
		k.shelf.Close(now())
	}
	if k.staging != nil {
		err = mem.Free(k.staging)
	}
	k.staging = nil
	return err
}

// room returns staging memory of at least so many bytes, in place of what there is.
func (k *kept) room(bytes int) (_ []byte, err error) {
	if k.staging != nil {
		err, k.staging = mem.Free(k.staging), nil
	}
	if err == nil {
		k.staging, err = mem.Alloc(int64(bytes))
	}
	if err != nil {
		return nil, fmt.Errorf("memory for blocks on their way to files: %w", err)
	}
	return k.staging, nil
}

// each calls f for so many numbers, some at a time. Who is done with one takes the next.
func each(n int, f func(i int)) {
	var all sync.WaitGroup
	var next atomic.Int64
	for range min(n, movedAtOnce) {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				f(int(i - 1))
			}
		})
	}
	all.Wait()
}

// tell logs the first failure after files worked, and that they work again.
func (k *kept) tell(written bool, files []error) {
	var err error
	for _, e := range files {
		if e != nil && !errors.Is(e, kvfiles.ErrFull) { // that is no failure: others have the room
			err = e
		}
	}
	verb := "read"
	if written {
		verb, k.unfit, k.until = "written", err, now().Add(unfitFor)
	}
	switch {
	case err != nil && !k.failing:
		k.log.Warn().Err(err).Msg("cached prompts on disk cannot be " + verb + ": answers go on without them")
	case err == nil && k.failing:
		k.log.Info().Msg("cached prompts on disk are " + verb + " again")
	}
	k.failing = err != nil
}
