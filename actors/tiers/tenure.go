package tiers

import "sync"

// tenure says whether reads may write to a model's memory: they may until close, which is called before the memory is
// freed. It is nil for memory that stays.
type tenure struct {
	mu     sync.Mutex
	closed bool
	reads  sync.WaitGroup
}

// enter begins a read, unless the memory is closed to them.
func (t *tenure) enter() bool {
	if t == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.reads.Add(1)
	}
	return !t.closed
}

// open says whether reads may still begin.
func (t *tenure) open() bool {
	if t == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.closed
}

// leave ends a read.
func (t *tenure) leave() {
	if t != nil {
		t.reads.Done()
	}
}

// close lets no read begin any more, and waits until those under way have ended.
func (t *tenure) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.reads.Wait()
}
