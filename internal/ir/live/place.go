package live

import "slices"

// Place sets the offsets of buffers, first fit, so that none overlap while they live, and returns how much memory they
// take, in the unit of size. A buffer that lies elsewhere has size 0, and gets offset 0. The memory of a buffer is used
// again only from the phase after its last: inside a phase, rows are at different items.
func Place(buffers []*Buffer, size func(*Buffer) int) (total int) {
	// Values from other devices are there before a phase begins, so they come first.
	buffers = slices.SortedStableFunc(slices.Values(buffers), func(a, b *Buffer) int { return a.First - b.First })
	var live []*Buffer // by offset
	for _, b := range buffers {
		live = slices.DeleteFunc(live, func(o *Buffer) bool { return o.Last < b.First })
		need, at, i := size(b), 0, 0
		for ; i < len(live) && live[i].Offset < at+need; i++ {
			at = live[i].Offset + size(live[i])
		}
		b.Offset = at
		live = slices.Insert(live, i, b)
		total = max(total, at+need)
	}
	return total
}
