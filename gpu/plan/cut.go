package plan

import "slices"

// cut is the range [from, to) of those launches of a segment that run once for each group, or for each part. It is
// empty where the segment's groups stay on the device.
type cut struct{ from, to int }

// Divided says whether a segment is computed group by group, or part by part.
func (p *Plan) Divided(segment int) bool { return p.cuts[segment].to > 0 }

// takes says whether the stream of a shape has launch i.
func (p *Plan) takes(s *Shape, i int) bool {
	l := &p.launches[i]
	c := p.cuts[l.segment]
	switch {
	case l.segment < s.From || l.segment > s.To:
		return false
	case s.Portion == Before:
		return i < c.from
	case s.Portion == Among:
		return c.from <= i && i < c.to && (l.piece == 0 || l.piece-1 == s.Group)
	case s.Portion == After:
		return i >= c.to
	}
	return true
}

// cut finds the range of each segment. Buffers that its launches touch live through all of it: it runs again for each
// group, so none of them may lie in another one's memory.
func (l *planner) cut() {
	l.cuts = make([]cut, len(l.program.Segments))
	for i := range l.launches {
		if x := &l.launches[i]; x.piece > 0 || x.parted {
			c := &l.cuts[x.segment]
			if c.to == 0 {
				c.from = i
			}
			c.to = i + 1
		}
	}
	for i := range l.launches {
		c := l.cuts[l.launches[i].segment]
		if i < c.from || i >= c.to {
			continue
		}
		for _, b := range slices.Concat(l.launches[i].reads, l.launches[i].writes) {
			b.First, b.Last = min(b.First, c.from), max(b.Last, c.to-1)
		}
	}
}
