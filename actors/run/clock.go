package run

import "time"

// now is the only clock of this package, so that tests run it in virtual time (testing/synctest).
func now() time.Time { return time.Now() }

// sleep is how System.Slow slows actors down, in tests.
func sleep(d time.Duration) { time.Sleep(d) }
