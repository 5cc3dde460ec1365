package swap

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// decide returns what is to be done now. After that there is nothing to decide until the next event, or the time
// that Next returns.
func (s *State) decide(now time.Time) (effects []Effect) {
	for _, m := range s.models {
		m.closing = false
	}
	effects = append(effects, s.expire(now)...)
	for len(s.queue) > 0 && s.queue[0].model.open() { // nobody who came later can close what they came for
		effects = append(effects, s.admit(s.queue[0], now))
		s.queue = s.queue[1:]
	}
	for _, w := range s.queue {
		if w.model.phase == Absent {
			w.model.turn(Measuring, now)
			effects = append(effects, Effect{Action: Measure, Model: w.model.name})
		}
	}
	effects = append(effects, s.load(now)...)
	s.queue = slices.DeleteFunc(s.queue, func(w waiter) bool {
		if w.model.open() {
			effects = append(effects, s.admit(w, now))
			return true
		}
		return false
	})
	for _, m := range s.models {
		if m.phase == Waiting && !s.wanted(m) {
			m.changed = false
			m.turn(Absent, now)
		}
	}
	return effects
}

func (s *State) admit(w waiter, now time.Time) Effect {
	w.model.users++
	w.model.used = now
	return Effect{Action: Admit, Model: w.model.name, Ticket: w.ticket}
}

// expire unloads models without users: those that nobody asked for in a long time, that were dismissed, or that
// cannot go on.
func (s *State) expire(now time.Time) (effects []Effect) {
	for _, m := range s.byUse() {
		old := (m.idle || s.limits.KeepAlive > 0 && now.Sub(m.used) >= s.limits.KeepAlive) && !s.wanted(m)
		if m.phase == Ready && m.users == 0 && (m.sick || old) {
			effects = append(effects, s.leave(m, now))
		}
	}
	return effects
}

// load begins to load the model that somebody has waited for longest, or makes room for it. One model is loaded at a
// time.
func (s *State) load(now time.Time) (effects []Effect) {
	for _, m := range s.models {
		if m.phase == Loading {
			return nil
		}
	}
	for i := 0; i < len(s.queue); i++ {
		w := s.queue[i]
		switch w.model.phase {
		case Measuring, Leaving:
			return effects // this model comes first, and will soon be ready for it
		case Waiting:
		default:
			continue // it has what it needs, or waits for those who are before it
		}
		free := s.limits.Room.minus(s.Used())
		if free.holds(w.model.need) {
			w.model.turn(Loading, now)
			return append(effects, Effect{Action: Load, Model: w.model.name, Room: w.model.need})
		}
		if !w.meek {
			return append(effects, s.clear(w.model.need, now)...)
		}
		s.queue = slices.Delete(s.queue, i, i+1)
		i--
		effects = append(effects, Effect{Action: Crowded, Model: w.model.name, Ticket: w.ticket})
	}
	return effects
}

// clear makes room for a model. Models without users are unloaded, the longest unused first, if that is enough
// together with those that are leaving. Else models that have had their time (model.stay) admit no more requests,
// until enough have no users.
func (s *State) clear(need Room, now time.Time) (effects []Effect) {
	free := s.limits.Room.minus(s.Used())
	var idle, busy []*model
	for _, m := range s.byUse() {
		switch {
		case m.phase == Leaving:
			free = free.plus(m.need)
		case m.phase == Ready && m.users == 0:
			idle = append(idle, m)
		case m.phase == Ready && !now.Before(m.since.Add(m.stay)):
			busy = append(busy, m)
		}
	}
	out := enough(free, need, append(slices.Clone(idle), busy...))
	waits := slices.ContainsFunc(out, func(m *model) bool { return m.users > 0 })
	for _, m := range out {
		switch {
		case !waits:
			effects = append(effects, s.leave(m, now))
		default:
			m.closing = true // and idle ones stay until the busy ones are idle too
		}
	}
	return effects
}

// enough returns the first of some models whose leaving makes room for need, without those that need not leave after
// all; nil if all together are not enough.
func enough(free, need Room, all []*model) (out []*model) {
	for _, m := range all {
		if free.holds(need) {
			break
		}
		free = free.plus(m.need)
		out = append(out, m)
	}
	if !free.holds(need) {
		return nil
	}
	for i := len(out) - 1; i >= 0; i-- {
		if less := free.minus(out[i].need); less.holds(need) {
			free = less
			out = slices.Delete(out, i, i+1)
		}
	}
	return out
}

func (s *State) leave(m *model, now time.Time) Effect {
	m.idle = false
	m.turn(Leaving, now)
	return Effect{Action: Unload, Model: m.name}
}

// wanted says that somebody waits for a model.
func (s *State) wanted(m *model) bool {
	return slices.ContainsFunc(s.queue, func(w waiter) bool { return w.model == m })
}

// byUse are the models, the longest unused first.
func (s *State) byUse() []*model {
	all := make([]*model, 0, len(s.models))
	for _, m := range s.models {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *model) int {
		return cmp.Or(a.used.Compare(b.used), strings.Compare(a.name, b.name))
	})
	return all
}

// Next is when Tick is due, if nothing happens before; false: never.
func (s *State) Next(now time.Time) (next time.Time, ok bool) {
	consider := func(at time.Time) {
		if at.After(now) && (!ok || at.Before(next)) {
			next, ok = at, true
		}
	}
	blocked := slices.ContainsFunc(s.queue, func(w waiter) bool { return w.model.phase == Waiting })
	for _, m := range s.models {
		switch {
		case m.phase != Ready:
		case m.users == 0 && s.limits.KeepAlive > 0:
			consider(m.used.Add(s.limits.KeepAlive))
		case m.users > 0 && blocked:
			consider(m.since.Add(m.stay))
		}
	}
	return next, ok
}
