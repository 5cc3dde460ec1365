package actors

import "sync"

// health is whether the house, or one model, can serve: its first error, and whether loading is over. Any goroutine
// may read it.
type health struct {
	mu    sync.Mutex
	err   error
	ready chan struct{} // closed when everything is loaded, or cannot be
	once  sync.Once
}

func newHealth() *health { return &health{ready: make(chan struct{})} }

func (h *health) set(err error) {
	h.mu.Lock()
	if h.err == nil {
		h.err = err
	}
	h.mu.Unlock()
	h.once.Do(func() { close(h.ready) })
}

func (h *health) get() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}
