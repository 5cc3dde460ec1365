package jinja

import "unicode/utf8"

// Limits bound what one rendering may use. They count work instead of time, so the same template over the same
// values always ends the same way.
type Limits struct {
	Steps  int // nodes visited, elements walked, and one more for each 32 bytes of text handled
	Output int // bytes of the rendered text, and of any single string
	Memory int // bytes of text built in all, released or not
	Depth  int // nested nodes, macro calls and values on the way to where rendering is

	Stop func() bool // asked from time to time, if set; true ends the rendering with an error
}

// DefaultLimits are far above real templates (a few thousand steps for a conversation of 10 messages) and end
// an endless one within about a second.
func DefaultLimits() Limits {
	return Limits{Steps: 20_000_000, Output: 16 << 20, Memory: 256 << 20, Depth: 2500}
}

// bytesPerStep is how much text counts as one step.
const bytesPerStep = 32

// spend takes n steps from the budget.
func (r *run) spend(n int) error {
	r.steps -= n
	if r.steps < 0 || n < 0 {
		return fail(Limit, "rendering takes more than %d steps", r.limits.Steps)
	}
	if r.steps <= r.ask && r.limits.Stop != nil {
		r.ask = r.steps - stepsBetween
		if r.limits.Stop() {
			return fail(Limit, "rendering was stopped")
		}
	}
	return nil
}

// stepsBetween is how many steps there are between two questions whether to stop: some milliseconds.
const stepsBetween = 1 << 14

// scan pays for reading text of n bytes.
func (r *run) scan(n int) error { return r.spend(1 + n/bytesPerStep) }

// room pays for building a string of n bytes, before it is built.
func (r *run) room(n int) error {
	if n > r.limits.Output || n < 0 {
		return fail(Limit, "a text longer than %d bytes", r.limits.Output)
	}
	r.memory -= n
	if r.memory < 0 {
		return fail(Limit, "rendering builds more than %d bytes of text", r.limits.Memory)
	}
	return r.spend(n / bytesPerStep)
}

// str pays for a string that was just built from one of similar size.
func (r *run) str(s string) (Value, error) { return Str(s), r.room(len(s)) }

// stepsPerElement is what an element of a new list costs: it takes memory as well as time.
const stepsPerElement = 4

// list pays for the elements of a new list.
func (r *run) list(items []Value) (Value, error) {
	return &List{items}, r.spend(len(items) * stepsPerElement)
}

// bigWork is what an operation on two numbers costs: nothing worth counting unless they are beyond 64 bits.
func bigWork(op string, a, b Value) int {
	words := func(v Value) int {
		if n, ok := v.(bigInt); ok {
			return len(n.n.Bits())
		}
		return 0
	}
	if op == "**" {
		return maxBits / 16
	}
	return (words(a) + 1) * (words(b) + 1) / 16
}

// enter goes one node or value deeper; leave comes back.
func (r *run) enter() error {
	r.depth++
	if r.depth > r.limits.Depth {
		return fail(Recursion, "maximum recursion depth exceeded")
	}
	return nil
}

func (r *run) leave() { r.depth-- }

// runes counts characters.
func runes(s string) int { return utf8.RuneCountInString(s) }
