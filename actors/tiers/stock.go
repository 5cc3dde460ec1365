package tiers

import "github.com/sluice-ai/sluice/stages/place"

// stock fills the free slots of experts while the drive has nothing else to do, so that a model that was just loaded
// is soon as fast as it will be. It brings experts that lie on disk, in the order of the file; those that are kept in
// the program's memory are copied soon enough when they are needed, and give up their slots. As many slots as a row
// uses are left to what steps ask for.
type stock struct {
	o       *occupancy
	shelves []place.Shelf
	next    int  // index of the shelf that is filled
	expert  int  // index in that shelf
	begun   bool // all groups are there that are brought once
	over    bool // nothing is left to do
}

// mostFills is how many experts are asked for at once: enough for the prefetcher to choose from.
const mostFills = 4

func (s *stock) fill() {
	if !s.begun {
		return
	}
	for !s.over && s.o.fills < mostFills {
		if g, at := s.choose(); !s.over {
			s.o.bring(g, at, filling)
		}
	}
	s.o.traffic.filling.Store(!s.over || s.o.fills > 0)
}

// choose finds the next expert and a slot for it.
func (s *stock) choose() (g, at int) {
	for ; s.next < len(s.shelves); s.next, s.expert = s.next+1, 0 {
		shelf := &s.shelves[s.next]
		at := s.free(shelf)
		if at < 0 {
			continue
		}
		for ; s.expert < len(shelf.Groups); s.expert++ {
			if g := shelf.Groups[s.expert]; s.o.groups[g].slot < 0 && !s.o.cargo.home(g).Kept() {
				return g, at
			}
		}
	}
	s.over = true
	return 0, 0
}

// free returns a slot of a shelf that can be filled: an empty one, or else that of an expert which is kept in the
// program's memory too and which no step uses; -1: there are no more such slots than a row uses.
func (s *stock) free(shelf *place.Shelf) int {
	o, n, at := s.o, 0, -1
	of := &o.segment[shelf.Segment]
	o.among = o.among[:0]
	for _, i := range shelf.Slots {
		switch x := &o.slots[i]; {
		case x.group < 0:
			at, n = i, n+1
		case o.cargo.home(x.group).Kept():
			if n++; x.leases == 0 && o.groups[x.group].there && !of.chosen[o.expert(x.group)] {
				o.among = append(o.among, int32(o.expert(x.group)))
			}
		}
	}
	switch {
	case n <= shelf.Used:
		return -1
	case at >= 0:
		return at
	}
	return o.leaves(of)
}

// end hears that a group did not come. Unless it was forsaken, nothing is filled any more: the next group would not
// come, either.
func (s *stock) end(m *Landed) {
	s.over = s.over || !m.Forsaken()
	s.fill()
}
