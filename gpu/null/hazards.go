package null

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/gpu/driver"
)

// hazards finds two commands that touch the same memory, at least one of them to write, and have no order: no barrier
// of their queue between them, no timeline that the first one raised and the second one waited for, and no host that
// waited in between. It does not depend on which of them was faster.
type hazards struct {
	host   known                            // what the host has seen to have ended
	number uint64                           // of the command that ran last
	behind [2]struct{ kernels, all uint64 } // by queue: commands up to these have ended, for kernels or for all
	open   []ran
}

// ran is a command that others may not know to have ended.
type ran struct {
	number uint64
	of     *submission
	name   string
	kernel bool
	reads  []touch // ascending, as writes
	writes []touch
}

// shut notes a barrier.
func (h *hazards) shut(queue driver.Queue, b barrier) {
	if h.behind[queue].kernels = h.number; b == all {
		h.behind[queue].all = h.number
	}
}

// add notes a command that ran now, and returns an error if it has no order with another one. Commands that everything
// knows to have ended (past) are forgotten.
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

// joined sorts touches by address, and joins those that overlap or adjoin.
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

// meets returns the first byte that two lists have in common.
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
