package kvevents

import "sync"

// Bounds of what the journal keeps, both of which hold.
const (
	mostBatches = 10_000
	mostBytes   = 16 << 20
)

// journal is the latest batches, each with a number. Who writes never waits: the oldest ones go. Each reader has a
// place of its own and may fall behind; the numbers that it gets say what it missed.
type journal struct {
	mu    sync.Mutex
	first uint64   // number of the oldest batch that is kept
	kept  [][]byte // not to be changed
	bytes int
	more  chan struct{} // closed when there is another one
}

// newJournal makes a journal whose first batch has a number.
func newJournal(first uint64) *journal { return &journal{first: first, more: make(chan struct{})} }

// add keeps a batch.
func (j *journal) add(batch []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.kept, j.bytes = append(j.kept, batch), j.bytes+len(batch)
	for len(j.kept) > mostBatches || j.bytes > mostBytes && len(j.kept) > 1 {
		j.bytes -= len(j.kept[0])
		j.kept[0] = nil
		j.kept, j.first = j.kept[1:], j.first+1
	}
	close(j.more)
	j.more = make(chan struct{})
}

// read returns the batch of a number, or the oldest one after it that is kept, and its number. If there is none yet,
// more is closed when there is.
func (j *journal) read(from uint64) (batch []byte, number uint64, more <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	from = max(from, j.first)
	if at := from - j.first; at < uint64(len(j.kept)) {
		return j.kept[at], from, nil
	}
	return nil, from, j.more
}

// end is the number of the next batch.
func (j *journal) end() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.first + uint64(len(j.kept))
}
