package kv

import "github.com/sluice-ai/sluice/internal/backend"

// Sizing says what the sequences are that a cache is made for.
type Sizing struct {
	Context   int // blocks of the longest one
	Sequences int // how many of them go on at once, or wait in the prefix tree to be continued, at least
	Ahead     int // positions beyond what is computed that each asks for
}

// Blocks is the number of blocks of a class with a window, or without (0), where classes that keep all have so many. A
// sequence holds a window and a little more, however long it is: a class needs that for as many sequences as the others
// hold contexts, room for one of them to prefill, and never more than the others have.
func (z Sizing) Blocks(window, all int) int {
	if window == 0 {
		return all
	}
	contexts := max(z.Sequences, (all+z.Context-1)/max(z.Context, 1), 1)
	each := backend.BlocksFor(window) + 2
	return min(all, Class{Window: window}.Least(z.Ahead)+(contexts-1)*each)
}
