package jinja

import "strconv"

// loop is the loop variable. It looks one element ahead, so that it knows the last one, and reads the rest of a
// generator only when asked for its length.
type loop struct {
	run   *run
	pull  next
	index int // of the current element, from 0; -1 before the first
	depth int

	previous, current Value // nil where there is none
	ahead             []Value
	ended             bool
	length            int // of a sequence; -1 for a generator not yet read to its end
	changed           []Value

	again func(over Value, depth int) (Value, error) // renders the loop over other values; nil if not recursive
}

func (*loop) class() string { return "LoopContext" }

// advance moves to the next element; false at the end.
func (l *loop) advance() (bool, error) {
	if err := l.look(); err != nil || len(l.ahead) == 0 {
		return false, err
	}
	l.previous, l.current = l.current, l.ahead[0]
	l.ahead = l.ahead[1:]
	l.index++
	return true, nil
}

// look reads one element ahead, if it is not there yet.
func (l *loop) look() error {
	if len(l.ahead) > 0 || l.ended {
		return nil
	}
	return l.read()
}

func (l *loop) read() error {
	v, ok, err := l.pull()
	if err != nil {
		return err
	}
	if !ok {
		l.ended = true
		return nil
	}
	l.ahead = append(l.ahead, v)
	return nil
}

func (l *loop) count() (int, error) {
	if l.length < 0 {
		for !l.ended {
			if err := l.read(); err != nil {
				return 0, err
			}
		}
		l.length = l.index + 1 + len(l.ahead)
	}
	return l.length, nil
}

func (l *loop) attr(name string) (Value, bool, error) {
	switch name {
	case "index":
		return Int(l.index + 1), true, nil
	case "index0":
		return Int(l.index), true, nil
	case "first":
		return Bool(l.index == 0), true, nil
	case "depth":
		return Int(l.depth), true, nil
	case "depth0":
		return Int(l.depth - 1), true, nil
	case "previtem":
		return l.neighbour(l.previous, "there is no previous item"), true, nil
	case "cycle", "changed":
		return &function{fn: l.run.lib.methods["LoopContext"][name], self: l}, true, nil
	case "last", "nextitem":
		if err := l.look(); err != nil {
			return nil, false, err
		}
		if name == "last" {
			return Bool(len(l.ahead) == 0), true, nil
		}
		var v Value
		if len(l.ahead) > 0 {
			v = l.ahead[0]
		}
		return l.neighbour(v, "there is no next item"), true, nil
	case "length", "revindex", "revindex0":
		n, err := l.count()
		switch name {
		case "revindex":
			n -= l.index
		case "revindex0":
			n -= l.index + 1
		}
		return Int(n), true, err
	}
	return nil, false, nil
}

func (l *loop) neighbour(v Value, hint string) Value {
	if v == nil {
		return &undefined{kind: UndefinedValue, hint: hint}
	}
	return v
}

func (l *loop) call(r *run, args callArgs) (Value, error) {
	if l.again == nil {
		return nil, fail(Type, "The loop must have the 'recursive' marker to be called recursively.")
	}
	if len(args.pos) != 1 || len(args.names) > 0 {
		return nil, fail(Type, "loop() takes exactly one argument")
	}
	return l.again(args.pos[0], l.depth+1)
}

func (l *loop) describe() string {
	n, err := l.count()
	if err != nil {
		return "<LoopContext>"
	}
	return "<LoopContext " + strconv.Itoa(l.index+1) + "/" + strconv.Itoa(n) + ">"
}

var loopMethods = map[string]*builtin{
	"cycle": takesAny(func(_ *run, self Value, a callArgs) (Value, error) {
		if len(a.pos) == 0 {
			return nil, fail(Type, "no items for cycling given")
		}
		return a.pos[max(self.(*loop).index, 0)%len(a.pos)], nil
	}),
	"changed": takesAny(func(r *run, self Value, a callArgs) (Value, error) {
		l := self.(*loop)
		if l.changed != nil {
			same, err := r.equal(Tuple(l.changed), Tuple(a.pos))
			if err != nil || same {
				return Bool(false), err
			}
		}
		l.changed = append([]Value{}, a.pos...)
		return Bool(true), nil
	}),
}

// stepsPerRound is what a round of a loop costs beside its body.
const stepsPerRound = 4

func (f *forStmt) exec(r *run, s *scope) (flow, error) {
	over, err := r.eval(f.over, s)
	if err != nil {
		return flowNext, at(err, f.line)
	}
	depth := 1
	if !f.recursive {
		return flowNext, at(f.render(r, s, over, depth, nil), f.line)
	}
	var again func(Value, int) (Value, error)
	again = func(over Value, depth int) (Value, error) {
		if err := r.enter(); err != nil {
			return nil, err
		}
		defer r.leave()
		text, _, err := r.capture(func() (flow, error) { return flowNext, f.render(r, s, over, depth, again) })
		if err != nil {
			return nil, err
		}
		return r.captured(text), nil
	}
	return flowNext, at(f.render(r, s, over, depth, again), f.line)
}

func (f *forStmt) render(
	r *run, s *scope, over Value, depth int, again func(Value, int) (Value, error),
) error {
	inner := &scope{parent: s}
	pull, err := r.iterate(over)
	if err != nil {
		return err
	}
	l := &loop{run: r, index: -1, depth: depth, length: -1, again: again, pull: pull}
	if f.test != nil {
		l.pull = f.selected(r, s, pull)
	} else if n, err := r.length(over); err == nil {
		l.length = n
	}
	finished := false
	for {
		ok, err := l.advance()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := r.spend(stepsPerRound); err != nil {
			return err
		}
		inner.clear()
		inner.set("loop", l)
		if err := r.assign(&f.target, l.current, inner); err != nil {
			return err
		}
		how, err := r.deeper(f.body, inner)
		if err != nil {
			return err
		}
		if how == flowBreak {
			break
		}
		finished = finished || how == flowNext
	}
	if !finished && f.other != nil { // not even one round came to its end: Jinja2 counts them there
		_, err := r.deeper(f.other, &scope{parent: s})
		return err
	}
	return nil
}

// selected passes on the elements for which the loop's condition holds.
func (f *forStmt) selected(r *run, s *scope, pull next) next {
	inner := &scope{parent: s}
	return func() (Value, bool, error) {
		for {
			v, ok, err := pull()
			if err != nil || !ok {
				return nil, false, err
			}
			inner.clear()
			if err := r.assign(&f.target, v, inner); err != nil {
				return nil, false, err
			}
			if ok, err := r.test(f.test, inner); err != nil || ok {
				return v, ok, err
			}
		}
	}
}
