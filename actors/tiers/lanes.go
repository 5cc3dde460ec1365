package tiers

import (
	"sync"
	"time"

	"github.com/sluice-ai/sluice/internal/source"
)

// lanes distribute reads among the copies of a file: each read goes to the copy where it should end first, by the rate
// at which that was read lately and the bytes that are under way there. So drives of any speeds are kept busy, and one
// that got slower gets less. The thread that reads chooses; reads end there, or on goroutines of their own.
type lanes struct {
	mu sync.Mutex       // of all lanes
	of map[string]*lane // by path
}

// lane is one copy of a file, and the rate at which it is read: bytes by seconds. Both fade with each read, so that
// the last few dozen reads count. A rate that is older than laneKnown does not: a lane that was slow once is tried
// again.
type lane struct {
	mu       *sync.Mutex
	opened   bool      // its first read has ended
	underWay int       // bytes that were asked for and are not there
	bytes    float64   // that came; fading
	seconds  float64   // in which reads were under way; fading
	seen     time.Time // when the first read under way began, or the last one ended
	rests    time.Time // until then it is not read, after a failure
}

const (
	laneFades = 0.97             // the factor by which bytes and seconds fade at each read
	laneKnown = time.Second      // for how long after its last read a lane's rate holds
	laneRests = 10 * time.Second // how long it is not read after a failure: that may have been one bad block, or a cable
)

func newLanes() *lanes { return &lanes{of: map[string]*lane{}} }

// choose returns the copy to read from, the source itself or one of its copies, and its lane, which is nil if there
// are no copies.
func (l *lanes) choose(s *source.Source, bytes int) (source.Source, *lane) {
	if len(s.Copies) == 0 {
		return *s, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all, fastest := make([]*lane, 1+len(s.Copies)), 0.0
	for i := range all {
		all[i] = l.at(s.Copy(i).Path)
		fastest = max(fastest, all[i].rate())
	}
	best, soonest := -1, 0.0
	for i, x := range all {
		if now().Before(x.rests) {
			continue
		}
		rate := x.rate()
		if rate == 0 {
			rate = max(fastest, 1) // it must be tried to be known
		}
		if end := float64(x.underWay+bytes) / rate; best < 0 || end < soonest {
			best, soonest = i, end
		}
	}
	best = max(best, 0) // all rest: then the file itself says what is wrong
	return s.Copy(best), all[best]
}

func (l *lanes) at(path string) *lane {
	x := l.of[path]
	if x == nil {
		x = &lane{mu: &l.mu}
		l.of[path] = x
	}
	return x
}

// rate is in bytes a second; 0: it is not known.
func (x *lane) rate() float64 {
	if x.seconds == 0 || x.underWay == 0 && now().Sub(x.seen) > laneKnown {
		return 0
	}
	return x.bytes / x.seconds
}

// begin counts a read that goes to the drive.
func (x *lane) begin(bytes int) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.underWay == 0 {
		x.seen = now()
	}
	x.underWay += bytes
}

// end counts a read that came back. It returns true if the lane rests from now on.
func (x *lane) end(bytes int, err error) (rests bool) {
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.underWay -= bytes
	if err != nil {
		rests = !now().Before(x.rests)
		x.rests = now().Add(laneRests)
		return rests
	}
	if x.opened { // the first read's time is that of opening the file
		x.bytes = x.bytes*laneFades + float64(bytes)
		x.seconds = x.seconds*laneFades + max(now().Sub(x.seen).Seconds(), 1e-9)
	}
	x.seen, x.opened = now(), true
	return false
}
