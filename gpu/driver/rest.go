package driver

import (
	"fmt"
	"sync"
	"time"
)

// Rest closes a device that may still be at work, because it hangs or was lost: memory that it may be reading or
// writing is freed when it has come to rest.
type Rest struct {
	mu    sync.Mutex
	held  bool
	later []func()
	once  sync.Once
	over  chan error // what end returned
}

// Hold makes Release wait, from now on, until the device has come to rest.
func (r *Rest) Hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = true
}

// Release frees something of the device's, now or, if it is held, in Free.
func (r *Rest) Release(free func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held {
		r.later = append(r.later, free)
		return
	}
	free()
}

// Free frees what was released while the device was held. The device has come to rest.
func (r *Rest) Free() {
	for _, free := range r.later {
		free()
	}
}

// Close runs end once, on a goroutine of its own, since a driver may wait for ever for a device that hangs. If end has
// not returned within the patience, Close returns an error, and end goes on.
func (r *Rest) Close(name string, patience time.Duration, end func() error) error {
	r.once.Do(func() {
		r.over = make(chan error, 1)
		go func() { r.over <- end() }()
	})
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case err := <-r.over:
		r.over <- nil // for who closes it again
		return err
	case <-late.C:
		return fmt.Errorf("%s has not come to rest within %s: its memory stays taken until it has, or until this program ends",
			name, patience)
	}
}
