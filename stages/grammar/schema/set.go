package schema

import (
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/stages/grammar/lang"
)

// set is a set of JSON values. Sets are not changed once they are made.
type set struct {
	null, yes, no bool
	num           *lang.DFA // the spellings of its numbers; nil: none
	strs          []text    // any of them
	arrs          []*array
	objs          []*object
}

// size is what it costs to look at a set, in steps of a budget.
func (s *set) size() int { return 5 + 5*(len(s.strs)+len(s.arrs)+len(s.objs)) }

// term is a schema, or its complement: all values that the schema does not allow.
type term struct {
	schema *value
	not    bool
}

// terms are schemas that a value must meet all, in ascending order without repetition. None: any value will do.
type terms []term

func (t terms) and(more ...term) terms {
	out := append(slices.Clone(t), more...)
	slices.SortFunc(out, func(a, b term) int {
		if a.schema.id != b.schema.id {
			return a.schema.id - b.schema.id
		}
		return int(flag(a.not)) - int(flag(b.not))
	})
	return slices.Compact(out)
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

const mostAlternatives = 200

// tooMany is the error of a product of alternatives.
func tooMany(n int) error {
	if n <= mostAlternatives {
		return nil
	}
	return fmt.Errorf("its alternatives multiply to more than %d: write fewer anyOf and oneOf beside each other", mostAlternatives)
}

// all is the set of all values.
func (c *compiler) all() *set {
	return &set{null: true, yes: true, no: true, num: c.number.any, strs: []text{anyText()},
		arrs: []*array{anyArray()}, objs: []*object{anyObject()}}
}

func (c *compiler) and(a, b *set) (*set, error) {
	out := &set{null: a.null && b.null, yes: a.yes && b.yes, no: a.no && b.no}
	err := c.left.Take(a.size() + b.size())
	if err != nil {
		return nil, err
	}
	if a.num != nil && b.num != nil {
		if out.num, err = c.andNumber(a.num, b.num); err != nil {
			return nil, err
		}
	}
	if err := tooMany(max(len(a.strs)*len(b.strs), len(a.arrs)*len(b.arrs), len(a.objs)*len(b.objs))); err != nil {
		return nil, err
	}
	for _, x := range a.strs {
		for _, y := range b.strs {
			t, err := c.andText(x, y)
			if err != nil {
				return nil, err
			}
			if !t.empty() {
				out.strs = append(out.strs, t)
			}
		}
	}
	if out.arrs, err = common(c, a.arrs, b.arrs, (*array).size, (*array).and, c.noArray); err != nil {
		return nil, err
	}
	out.objs, err = common(c, a.objs, b.objs, (*object).size, (*object).and, c.noObject)
	return out, err
}

// common returns the intersections of each of as with each of bs, without those that are empty.
func common[T any](c *compiler, as, bs []T, size func(T) int, and func(a, b T) T, none func(T) bool) (
	out []T, err error) {
	for _, a := range as {
		for _, b := range bs {
			if err := c.left.Take(size(a) + size(b)); err != nil {
				return nil, err
			}
			if both := and(a, b); !none(both) {
				out = append(out, both)
			}
		}
	}
	return out, nil
}

func (c *compiler) or(sets ...*set) (*set, error) {
	out, listed := &set{}, text{listed: true}
	for _, s := range sets {
		if err := c.left.Take(s.size()); err != nil {
			return nil, err
		}
		out.null, out.yes, out.no = out.null || s.null, out.yes || s.yes, out.no || s.no
		switch {
		case out.num == nil:
			out.num = s.num
		case s.num != nil && s.num != out.num:
			var err error
			if out.num, err = lang.Or(out.num, s.num, &c.left); err != nil {
				return nil, err
			}
		}
		for _, t := range s.strs {
			if t.listed {
				listed.words = append(listed.words, t.words...)
			} else {
				out.strs = append(out.strs, t)
			}
		}
		out.arrs = append(out.arrs, s.arrs...)
		out.objs = append(out.objs, s.objs...)
	}
	if len(listed.words) > 0 {
		out.strs = append(out.strs, listed)
	}
	for _, t := range out.strs {
		if t.any() { // the others lie within
			out.strs = []text{anyText()}
		}
	}
	for _, x := range out.arrs {
		if x.any() {
			out.arrs = []*array{x}
		}
	}
	for _, x := range out.objs {
		if x.any() {
			out.objs = []*object{x}
		}
	}
	return out, tooMany(max(len(out.strs)/100, len(out.arrs), len(out.objs)))
}

// minus returns the values of a that b has not.
func (c *compiler) minus(a, b *set) (*set, error) {
	out := &set{null: a.null && !b.null, yes: a.yes && !b.yes, no: a.no && !b.no, num: a.num}
	if err := c.left.Take(a.size() + b.size()); err != nil {
		return nil, err
	}
	if a.num != nil && b.num != nil {
		plain, err := lang.And(a.num, c.number.plain, &c.left) // of numbers with exponents nothing is known
		if err != nil {
			return nil, err
		}
		if out.num, err = lang.Minus(plain, b.num, &c.left); err != nil {
			return nil, err
		}
		if out.num.Empty() {
			out.num = nil
		}
	}
	var err error
	if out.strs, err = c.minusTexts(a.strs, b.strs); err != nil {
		return nil, err
	}
	out.arrs = a.arrs
	for _, y := range b.arrs {
		if out.arrs, err = without(&c.left, out.arrs, y, (*array).and, c.noArray, c.notArray); err != nil {
			return nil, err
		}
	}
	out.objs = a.objs
	for _, y := range b.objs {
		if out.objs, err = without(&c.left, out.objs, y, (*object).and, c.noObject, c.notObject); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// without takes y away from alternatives: those that share nothing with it stay as they are.
func without[T any](left *lang.Budget, from []*T, y *T, and func(a, b *T) *T, none func(*T) bool,
	not func(*T) ([]*T, error)) ([]*T, error) {
	var out []*T
	for _, x := range from {
		if err := left.Take(300); err != nil {
			return nil, err
		}
		if none(and(x, y)) {
			out = append(out, x)
			continue
		}
		outside, err := not(y)
		if err != nil {
			return nil, err
		}
		for _, z := range outside {
			if both := and(x, z); !none(both) {
				out = append(out, both)
			}
		}
	}
	return out, tooMany(len(out))
}

// empty says that a set is known to have no value. What it does not know is not empty.
func (c *compiler) empty(s *set) bool {
	if s.null || s.yes || s.no || s.num != nil || len(s.strs) > 0 {
		return false
	}
	return !slices.ContainsFunc(s.arrs, func(x *array) bool { return !c.noArray(x) }) &&
		!slices.ContainsFunc(s.objs, func(x *object) bool { return !c.noObject(x) })
}

// never says that no value meets all terms, as far as is known.
func (c *compiler) never(t terms) bool {
	if len(t) == 0 {
		return false
	}
	key := t.key()
	switch c.nothing[key] {
	case knownEmpty:
		return true
	case knownSome:
		return false
	}
	c.nothing[key] = knownSome // while it asks itself
	s, err := c.meaning(t)
	if err == nil && c.empty(s) {
		c.nothing[key] = knownEmpty
		return true
	}
	return false
}

type emptiness uint8

const (
	knownEmpty emptiness = iota + 1
	knownSome
)

// key tells terms apart.
func (t terms) key() string {
	var k []byte
	for _, x := range t {
		k = fmt.Appendf(k, "%d%c", x.schema.id, "+-"[flag(x.not)])
	}
	return string(k)
}
