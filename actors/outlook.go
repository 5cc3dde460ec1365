package actors

import (
	"sync"
	"time"

	"github.com/sluice-ai/sluice/stages/kv"
	"github.com/sluice-ai/sluice/stages/promise"
)

// outlook is what a model's actors let others see of what they have to do, so that requests are told what to expect
// before they are accepted, without waiting for a step. It outlives their incarnations.
type outlook struct {
	mu    sync.Mutex
	load  promise.Load
	since time.Time // when the oldest step in flight was planned

	caching sync.Mutex // held by the KV owner while it handles a message
	cache   *kv.Cache
}

// cached is how many of a prompt's tokens are in the prefix tree now.
func (o *outlook) cached(salt uint64, prompt []int32) int {
	o.caching.Lock()
	defer o.caching.Unlock()
	if o.cache == nil {
		return 0
	}
	return o.cache.Cached(salt, prompt)
}
