package system

import "math"

// MostFiles returns no bound: Windows has none but memory.
func MostFiles() uint64 { return math.MaxUint64 }

// MostLocked returns no bound: LockMemory raises that of the process.
func MostLocked() (uint64, error) { return math.MaxUint64, nil }

// ToLockMore says how a person lets processes lock more memory.
const ToLockMore = "close other programs"
