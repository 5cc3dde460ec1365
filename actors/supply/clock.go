package supply

import "time"

// now is the only clock of this package, so that tests run it in virtual time (testing/synctest).
func now() time.Time { return time.Now() }

// after ticks once, after a while.
func after(d time.Duration) *time.Timer { return time.NewTimer(d) }
