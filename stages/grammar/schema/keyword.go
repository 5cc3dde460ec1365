package schema

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/grammar/lang"
)

// compiler understands one schema.
// Wide: what was met of a schema is remembered by kind, and all kinds need each other.
type compiler struct {
	options Options
	values  *parser
	index   *index
	left    lang.Budget
	number  numbers
	anyLang *lang.DFA
	never0  *value // the schema false
	draft   draft

	sets    map[int]*set // by value
	busy    map[int]bool
	consts  map[*value]*value // {"const": v} by v
	nothing map[string]emptiness
	langs   map[string]*lang.DFA // of expressions

	grammar grammar.Grammar
	rules   map[string]int // by terms' key
	queue   []terms        // of rules without a body
	lexemes map[string]*grammar.Lexeme
}

// draft says which keywords count.
type draft struct {
	old    bool // 7 or before
	hides  bool // $ref hides what stands beside it, as in those
	modern bool // 2019-09 or later
}

func draftOf(root *value, o Options) (draft, error) {
	s := root.get("$schema")
	if s == nil || s.kind != isString {
		return draft{old: o.Draft7, hides: o.Draft7}, nil
	}
	for _, name := range [...]string{"draft-07", "draft-06", "draft-04", "draft-03", "json-schema.org/schema"} {
		if strings.Contains(s.text, name) {
			return draft{old: true, hides: true}, nil
		}
	}
	if strings.Contains(s.text, "2020-12") || strings.Contains(s.text, "2019-09") {
		return draft{modern: true}, nil
	}
	return draft{}, fmt.Errorf("$schema is %q: want draft 2020-12 or 7", shown(s.text))
}

// problem says where in the schema something cannot be kept.
type problem struct {
	at  *value
	err error
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

// at marks the schema in which an error arose, unless one within it is marked.
func at(v *value, err error) error {
	if err == nil || errors.As(err, new(*problem)) {
		return err
	}
	return &problem{v, err}
}

// meaning returns the set of the values that meet all terms.
func (c *compiler) meaning(t terms) (*set, error) {
	var out *set
	for _, x := range t {
		s, err := c.set(x.schema)
		if err == nil && x.not {
			s, err = c.minus(c.all(), s)
		}
		if err == nil && out != nil {
			s, err = c.and(out, s)
		}
		if err != nil {
			return nil, at(x.schema, err)
		}
		out = s
	}
	if out == nil {
		out = c.all()
	}
	return out, nil
}

// set returns the values that a schema allows.
func (c *compiler) set(v *value) (*set, error) {
	if s := c.sets[v.id]; s != nil {
		return s, nil
	}
	if v.kind == isBool {
		if v.yes {
			return c.all(), nil
		}
		return &set{}, nil
	}
	if v.kind != isObject {
		return nil, at(v, errors.New("a schema is an object, true or false"))
	}
	if c.busy[v.id] {
		return nil, at(v, errors.New("$ref leads back to itself without a value between"))
	}
	if len(c.busy) > deepestText {
		return nil, at(v, fmt.Errorf("more than %d schemas that lead to each other without a value between", deepestText))
	}
	c.busy[v.id] = true
	s, err := c.keywords(v)
	delete(c.busy, v.id)
	if err != nil {
		return nil, at(v, err)
	}
	c.sets[v.id] = s
	return s, nil
}

// keywords intersects what the keywords of a schema say.
func (c *compiler) keywords(v *value) (*set, error) {
	if ref := v.get("$ref"); ref != nil && ref.kind == isString && c.draft.hides {
		return c.ref(v, ref)
	}
	s, err := c.typed(v)
	if err != nil {
		return nil, err
	}
	for _, k := range v.keys {
		x := v.fields[k]
		var more *set
		switch k {
		case "enum":
			more, err = c.enum(x)
		case "const":
			more, err = c.constant(x)
		case "$ref":
			more, err = c.ref(v, x)
		case "allOf", "anyOf", "oneOf":
			more, err = c.combined(k, x)
		case "not":
			if more, err = c.set(x); err == nil {
				more, err = c.minus(c.all(), more)
			}
		case "if":
			more, err = c.conditional(v, x)
		case "dependentRequired", "dependentSchemas", "dependencies":
			if k == "dependencies" && c.draft.modern || k != "dependencies" && c.draft.old {
				continue
			}
			more, err = c.dependent(x)
		case "unevaluatedProperties", "unevaluatedItems":
			if c.draft.old {
				continue
			}
			more, err = c.unevaluated(k, v, x)
		case "$dynamicRef", "$recursiveRef", "extends", "disallow":
			err = errors.New("it is not supported")
		default:
			continue
		}
		if err == nil {
			s, err = c.and(s, more)
		}
		if err != nil && !errors.As(err, new(*problem)) {
			err = fmt.Errorf("%s: %w", k, err)
		}
		if err != nil {
			return nil, at(v, err)
		}
	}
	return s, nil
}

func (c *compiler) ref(v, ref *value) (*set, error) {
	if ref.kind != isString {
		return nil, errors.New("$ref is not a string")
	}
	to, err := c.index.find(v, ref.text)
	if err != nil {
		return nil, err
	}
	return c.set(to)
}

func (c *compiler) combined(k string, list *value) (*set, error) {
	if list.kind != isArray || len(list.list) == 0 {
		return nil, errors.New("want a list of schemas")
	}
	sets := make([]*set, len(list.list))
	for i, x := range list.list {
		var err error
		if sets[i], err = c.set(x); err != nil {
			return nil, err
		}
	}
	switch k {
	case "anyOf":
		return c.or(sets...)
	case "oneOf":
		return c.oneOf(sets)
	}
	out := sets[0]
	for _, s := range sets[1:] {
		var err error
		if out, err = c.and(out, s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// oneOf is what is in one of the sets and in no other.
func (c *compiler) oneOf(sets []*set) (*set, error) {
	if words, ok := onlyWords(sets); ok {
		return &set{strs: []text{{words: words, listed: true}}}, c.left.Take(10 * len(words))
	}
	alone := make([]*set, len(sets))
	for i, s := range sets {
		for j, other := range sets {
			if j == i {
				continue
			}
			var err error
			if s, err = c.minus(s, other); err != nil {
				return nil, err
			}
		}
		alone[i] = s
	}
	return c.or(alone...)
}

// onlyWords lists the words that are in one of some sets alone; ok, that each of these sets is one word and no more.
func onlyWords(sets []*set) (words []string, ok bool) {
	times := map[string]int{}
	for _, s := range sets {
		other := s.null || s.yes || s.no || s.num != nil || len(s.arrs)+len(s.objs) > 0
		if other || len(s.strs) != 1 || len(s.strs[0].words) != 1 {
			return nil, false
		}
		words = append(words, s.strs[0].words[0])
		times[s.strs[0].words[0]]++
	}
	return slices.DeleteFunc(words, func(w string) bool { return times[w] > 1 }), true
}

// conditional is (if and then) or (not if and else).
func (c *compiler) conditional(v, cond *value) (*set, error) {
	branch := func(key string, from *set) (*set, error) {
		x := v.get(key)
		if x == nil {
			return from, nil
		}
		s, err := c.set(x)
		if err != nil {
			return nil, err
		}
		return c.and(from, s)
	}
	if v.get("then") == nil && v.get("else") == nil {
		return c.all(), nil
	}
	is, err := c.set(cond)
	if err != nil {
		return nil, err
	}
	not, err := c.minus(c.all(), is)
	if err != nil {
		return nil, err
	}
	if is, err = branch("then", is); err != nil {
		return nil, err
	}
	if not, err = branch("else", not); err != nil {
		return nil, err
	}
	return c.or(is, not)
}

// dependent says what must hold where a key is there: other keys, or a schema.
func (c *compiler) dependent(x *value) (*set, error) {
	out := c.all()
	for _, key := range x.keys {
		on := x.fields[key]
		then := c.all()
		if on.kind == isArray {
			keys, err := words(on)
			if err != nil {
				return nil, err
			}
			then.objs = []*object{requiring(keys...)}
		} else {
			var err error
			if then, err = c.set(on); err != nil {
				return nil, err
			}
		}
		without := c.all()
		without.objs = []*object{c.forbidding(key)}
		there := &set{objs: []*object{requiring(key)}}
		both, err := c.and(there, then)
		if err != nil {
			return nil, err
		}
		either, err := c.or(without, both)
		if err != nil {
			return nil, err
		}
		if out, err = c.and(out, either); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func words(list *value) (out []string, err error) {
	if list.kind != isArray {
		return nil, errors.New("want a list of strings")
	}
	for _, x := range list.list {
		if x.kind != isString {
			return nil, errors.New("want a list of strings")
		}
		out = append(out, x.text)
	}
	return out, nil
}

// count reads a keyword whose value is a number of things; otherwise is for schemas without it.
func count(v *value, key string, otherwise int) (int, error) {
	x := v.get(key)
	if x == nil {
		return otherwise, nil
	}
	f, err := strconv.ParseFloat(x.text, 64)
	if x.kind != isNumber || err != nil || f < 0 || f != float64(int(f)) || f > 1e15 {
		return 0, fmt.Errorf("%s: want a whole number of at least 0", key)
	}
	return int(f), nil
}
