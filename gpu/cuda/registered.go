//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"sync"

	"github.com/sluice-ai/sluice/gpu/cuda/cu"
)

// registered is the program's memory that cards copy to and from.
var registered = registrations{users: map[uint64]int{}}

// registrations counts the devices that use each registered range, by its address: the driver registers a range once,
// for all cards of the process, and refuses it a second time.
type registrations struct {
	mu    sync.Mutex
	users map[uint64]int
}

func (r *registrations) add(d *cu.Device, memory []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := cu.AddressOf(memory)
	if r.users[at] == 0 {
		if err := d.Register(memory); err != nil {
			return err
		}
	}
	r.users[at]++
	return nil
}

func (r *registrations) remove(d *cu.Device, memory []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := cu.AddressOf(memory)
	if r.users[at]--; r.users[at] > 0 {
		return nil
	}
	delete(r.users, at)
	return d.Unregister(memory)
}
