package actors

import "time"

// now is the only clock of this package, so that tests run it in virtual time (testing/synctest).
func now() time.Time { return time.Now() }

// ticker ticks at the pace at which a person follows progress, or never.
func ticker(on bool) *time.Ticker {
	t := time.NewTicker(50 * time.Millisecond)
	if !on {
		t.Stop()
	}
	return t
}

// after runs f later, unless the timer is stopped.
func after(d time.Duration, f func()) *time.Timer { return time.AfterFunc(d, f) }
