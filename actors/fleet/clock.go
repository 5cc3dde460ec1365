package fleet

import "time"

// The clock is read here alone. It is virtual in tests.

func now() time.Time { return time.Now() }

// after runs f later, unless the timer is stopped.
func after(d time.Duration, f func()) *time.Timer { return time.AfterFunc(d, f) }
