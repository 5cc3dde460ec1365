package tiers

import (
	"sync/atomic"
	"time"
)

// Progress is how far the weights of a model have come, for whoever asks. The device and its uploader keep it.
type Progress struct {
	bytes atomic.Int64 // of weights that have come home

	// When each of Stages was reached, in nanoseconds since 1970; 0: not yet.
	laid, asked, read, home atomic.Int64
}

// Stages are the times at which the loading of a model reached its stages; zero: not yet.
type Stages struct {
	Laid  time.Time // the device is ready for weights
	Asked time.Time // the first read was passed on
	Read  time.Time // the last one had ended
	Home  time.Time // the last weights were where they stay
}

// Bytes is how many bytes of weights have come home.
func (p *Progress) Bytes() int64 { return p.bytes.Load() }

// Stages returns the times of the last load.
func (p *Progress) Stages() Stages {
	at := func(n *atomic.Int64) time.Time {
		if n := n.Load(); n != 0 {
			return time.Unix(0, n)
		}
		return time.Time{}
	}
	return Stages{Laid: at(&p.laid), Asked: at(&p.asked), Read: at(&p.read), Home: at(&p.home)}
}

// begin forgets an older load: the device is ready for weights now.
func (p *Progress) begin() {
	p.bytes.Store(0)
	p.laid.Store(now().UnixNano())
	for _, later := range []*atomic.Int64{&p.asked, &p.read, &p.home} {
		later.Store(0)
	}
}

// came notes the times of a read that has ended.
func (p *Progress) came(asked, ended time.Time) {
	p.asked.CompareAndSwap(0, asked.UnixNano())
	p.read.Store(max(p.read.Load(), ended.UnixNano()))
}

// arrived counts what has come home.
func (p *Progress) arrived(bytes int64) {
	p.bytes.Add(bytes)
	p.home.Store(now().UnixNano())
}
