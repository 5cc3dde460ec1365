package null

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/gpu/driver"
)

// hazards finds commands that touch the same memory, one of them to write, and that nothing orders: no barrier of their
// queue between them, no timeline that one waits for and the other raises, and no host that waited. It does not depend
// on which of them was faster.
type hazards struct {
	host   known                            // what the host has seen to have ended
	number uint64                           // of the command that ran last
	behind [2]struct{ kernels, all uint64 } // by queue: commands up to these numbers are before the ones that follow
	open   []ran
}

// ran is a command that may still be at work, as far as others know.
type ran struct {
	number uint64
	of     *submission
	name   string
	kernel bool
	reads  []touch // ascending, as writes
	writes []touch
}

// shut is a barrier.
func (h *hazards) shut(queue driver.Queue, b barrier) {
	if h.behind[queue].kernels = h.number; b == all {
		h.behind[queue].all = h.number
	}
}

// add is a command that ran now. What is past for all is forgotten.
func (h *hazards) add(s *submission, c *command, touched []touch, past known) error {
	h.number++
	now := ran{number: h.number, of: s, name: c.name, kernel: c.kernel}
	for _, t := range touched {
		if t.write {
			now.writes = append(now.writes, t)
		} else {
			now.reads = append(now.reads, t)
		}
	}
	now.reads, now.writes = joined(now.reads), joined(now.writes)
	h.open = slices.DeleteFunc(h.open, func(r ran) bool { return r.of.number <= past[r.of.queue] })
	for i := range h.open {
		before := &h.open[i]
		if h.ordered(before, &now) {
			continue
		}
		for _, both := range [...][2][]touch{{before.writes, now.writes}, {before.writes, now.reads},
			{before.reads, now.writes}} {
			if at, yes := meets(both[0], both[1]); yes {
				return fmt.Errorf("%s and %s have the byte at %#x in common, and no order", before.name, now.name, at)
			}
		}
	}
	h.open = append(h.open, now)
	return nil
}

// ordered says whether a command has ended before another begins, on any device.
func (h *hazards) ordered(before, now *ran) bool {
	q := now.of.queue
	if before.of.number <= now.of.knows[before.of.queue] {
		return true
	}
	if before.of.queue != q {
		return false
	}
	return before.number <= h.behind[q].all || before.kernel && now.kernel && before.number <= h.behind[q].kernels
}

// joined is touches in the order of their addresses, those that lie together as one.
func joined(touched []touch) []touch {
	slices.SortFunc(touched, func(a, b touch) int { return cmp.Compare(a.from, b.from) })
	to := touched[:0]
	for _, t := range touched {
		if n := len(to) - 1; n >= 0 && t.from <= to[n].to {
			to[n].to = max(to[n].to, t.to)
			continue
		}
		to = append(to, t)
	}
	return to
}

// meets finds a byte that two lists have in common.
func meets(a, b []touch) (at uint64, yes bool) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].to <= b[0].from:
			a = a[1:]
		case b[0].to <= a[0].from:
			b = b[1:]
		default:
			return max(a[0].from, b[0].from), true
		}
	}
	return 0, false
}
