package tiers

import (
	"errors"
	"sync"

	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/pin"
	"github.com/sluice-ai/sluice/storage/uring"
)

// Slabs are the staging buffers through which the weights of all models travel: place.Slabs of one size, numbered from
// 0. They grow when a model enters that needs larger ones. The older ones stay until Close, since reads into them may
// be under way and devices may read them; as sizes at least double, all together take less than twice the bytes of the
// last. Any goroutine may use them.
type Slabs struct {
	mu  sync.Mutex
	all []*pin.Arena // the last one is used
}

// Fit makes slabs large enough for so many bytes each, and for reads that round outwards to the disk's blocks.
func (s *Slabs) Fit(bytes int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := s.size()
	if size >= bytes+uring.Slack {
		return nil
	}
	arena, err := pin.New(place.Slabs, max(bytes+uring.Slack, 2*size))
	if err != nil {
		return err
	}
	s.all = append(s.all, arena)
	return nil
}

// Size is the bytes of a slab; 0 before the first Fit.
func (s *Slabs) Size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size()
}

func (s *Slabs) size() int {
	if len(s.all) == 0 {
		return 0
	}
	return len(s.all[len(s.all)-1].Slab(0))
}

// Slab returns slab i.
func (s *Slabs) Slab(i int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[len(s.all)-1].Slab(i)
}

// Memory is all slabs in one piece; nil before the first Fit.
func (s *Slabs) Memory() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		return nil
	}
	return s.all[len(s.all)-1].Memory()
}

// Close frees them. None may be in use.
func (s *Slabs) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, a := range s.all {
		errs = append(errs, a.Close())
	}
	s.all = nil
	return errors.Join(errs...)
}
