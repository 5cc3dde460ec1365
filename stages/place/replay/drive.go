package replay

import "slices"

// drive brings what it is asked for piece by piece, so that what is needed overtakes what is only guessed.
type drive struct {
	speed  float64      // bytes a second
	free   float64      // when it is done with the piece at hand
	asked  []*read      // in the order in which they were asked for
	guess  *read        // what is read while nothing is asked for; nil: nothing
	likely func() *read // the next guess; nil: none
}

// read is something on its way.
type read struct {
	layer, expert int
	left          float64 // bytes
	piece         float64
	landed        bool
	fills         bool    // it fills a free slot: no layer has asked for it
	at            float64 // when it landed
}

// mostPiece is the bytes that are read at once, at most; fewest the number of pieces of an expert, at least: its
// matrices lie apart.
const (
	mostPiece = 1 << 20
	fewest    = 3
)

func newRead(layer, expert int, bytes float64) *read {
	return &read{layer: layer, expert: expert, left: bytes, piece: min(mostPiece, bytes/fewest)}
}

// ask queues a read behind those asked for before; it begins at now at the earliest.
func (d *drive) ask(r *read, now float64) *read {
	d.work(now)
	d.asked = append(d.asked, r)
	return r
}

// need makes a guess that is being read a read that is asked for.
func (d *drive) need(r *read) {
	if r == d.guess {
		d.guess = nil
		d.asked = append(d.asked, r)
	}
}

// work lets the drive read until a time. Guesses begin only while nothing is asked for.
func (d *drive) work(until float64) {
	for d.free < until {
		if len(d.asked) == 0 && d.guess == nil {
			if d.guess = d.likely(); d.guess == nil {
				d.free = until
				return
			}
		}
		d.piece()
	}
}

// finish lets the drive read until something has landed, and returns when that was.
func (d *drive) finish(r *read) float64 {
	for !r.landed {
		d.piece()
	}
	return r.at
}

// piece reads the next piece.
func (d *drive) piece() {
	r := d.guess
	if len(d.asked) > 0 {
		r = d.asked[0]
	}
	n := min(r.piece, r.left)
	d.free += over(n, d.speed)
	if r.left -= n; r.left > 0.5 {
		return
	}
	r.landed, r.at = true, d.free
	if r == d.guess {
		d.guess = nil
	}
	d.asked = slices.DeleteFunc(d.asked, func(x *read) bool { return x == r })
}
