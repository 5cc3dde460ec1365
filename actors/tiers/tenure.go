package tiers

import "sync"

// tenure is how long reads may write to a model's memory: until it is closed, before the memory goes. Of memory that
// stays it is nil.
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

// leave ends one.
func (t *tenure) leave() {
	if t != nil {
		t.reads.Done()
	}
}

// close returns when none is under way, and none will be.
func (t *tenure) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.reads.Wait()
}
