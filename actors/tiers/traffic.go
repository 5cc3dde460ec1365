package tiers

import "sync/atomic"

// Traffic counts what comes to slots that groups share. The device's actor writes, anybody reads; it outlives the
// device's incarnations.
type Traffic struct {
	found, missed          atomic.Uint64
	guesses, right         atomic.Uint64
	needed, early, guessed atomic.Uint64
	filling                atomic.Bool
}

// Moved is what Traffic had counted when it was loaded.
type Moved struct {
	Found, Missed                  uint64 // uses of experts that had a slot, and of those that had none
	Guesses, Right                 uint64 // experts that were brought on a guess, and how many of them were used
	StepBytes, AheadBytes, Guessed uint64 // bytes that landed: what steps waited for, what they come to, guesses
	Filling                        bool   // free slots are being filled
}

// Load reads all counts.
func (t *Traffic) Load() Moved {
	return Moved{t.found.Load(), t.missed.Load(), t.guesses.Load(), t.right.Load(),
		t.needed.Load(), t.early.Load(), t.guessed.Load(), t.filling.Load()}
}

// landed counts a group that has come, by how urgent it was at that time.
func (t *Traffic) landed(bytes int64, u urgency) {
	switch u {
	case demanded:
		t.needed.Add(uint64(bytes))
	case ahead, filling:
		t.early.Add(uint64(bytes))
	default:
		t.guessed.Add(uint64(bytes))
	}
}

// chose counts a use of an expert that has a slot, or has none.
func (t *Traffic) chose(has bool) {
	if has {
		t.found.Add(1)
	} else {
		t.missed.Add(1)
	}
}
