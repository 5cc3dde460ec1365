package actors

import (
	"slices"
	"sync"

	"github.com/sluice-ai/sluice/internal/backend"
)

// slots remembers, of each slot, the text of its last request as the prefix tree knows it. It outlives actors.
type slots struct {
	mu   sync.Mutex
	all  []slotText // least recently used first
	most int        // slots of an owner
}

// slotText is the text of one slot, in whole blocks.
type slotText struct {
	Slot
	salt   uint64
	tokens []int32
}

// mostRemembered is how many tokens slots remember together, but for the newest text: 8 MiB.
const mostRemembered = 2 << 20

// remember notes the text of a request that has ended, or makes room for others, if a slot wants to know it.
func (s *slots) remember(of *asked, text []int32) {
	if of.Slot == nil || len(text) == 0 {
		return
	}
	text = slices.Clone(text[:len(text)-len(text)%backend.BlockSize])
	s.mu.Lock()
	defer s.mu.Unlock()
	to := *of.Slot
	if to.ID < 0 {
		to.ID = s.choose(to.Owner, of.Salt, text)
	}
	s.put(slotText{to, of.Salt, text})
}

// put sets a slot's text. The caller holds the mutex.
func (s *slots) put(x slotText) {
	s.drop(x.Slot)
	s.all = append(s.all, x)
	sum := 0
	for i := len(s.all) - 1; i >= 0; i-- {
		if sum += len(s.all[i].tokens); sum > mostRemembered && i < len(s.all)-1 {
			s.all = slices.Clone(s.all[i+1:])
			return
		}
	}
}

// choose finds the slot of an owner whose text goes on with this one; else one that is free; else the one that was not
// used for longest.
func (s *slots) choose(owner string, salt uint64, text []int32) int {
	best, longest, taken, oldest := -1, 0, map[int]bool{}, -1
	for _, x := range s.all {
		if x.Owner != owner {
			continue
		}
		taken[x.ID] = true
		if oldest < 0 {
			oldest = x.ID
		}
		n := len(x.tokens)
		if x.salt == salt && n > longest && n <= len(text) && slices.Equal(x.tokens, text[:n]) {
			best, longest = x.ID, n
		}
	}
	if best >= 0 {
		return best
	}
	for id := range max(s.most, 1) {
		if !taken[id] {
			return id
		}
	}
	return oldest
}

// get returns a slot's text.
func (s *slots) get(of Slot) (slotText, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.all, func(x slotText) bool { return x.Slot == of })
	if i < 0 {
		return slotText{}, false
	}
	return s.all[i], true
}

// drop forgets a slot's text. The caller holds the mutex.
func (s *slots) drop(of Slot) {
	s.all = slices.DeleteFunc(s.all, func(x slotText) bool { return x.Slot == of })
}
