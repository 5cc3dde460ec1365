package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/grammar/lang"
)

const (
	mostRules    = 20_000
	mostFree     = 5    // required keys without properties that may come in any order
	mostPatterns = 6    // patternProperties of one object
	mostItems    = 5000 // of a bound on items or keys
)

// The rules that every grammar has, after the root.
const (
	ruleBlanks = 1 + iota // before a colon
	ruleSpace             // between other tokens
	ruleEnd               // after the last one
)

// build makes the rules of all values that the root leads to.
func (c *compiler) build(root terms) error {
	c.grammar.Rules = []grammar.Rule{{Name: "root"}, {Name: "blanks"}, {Name: "space"}, {Name: "end"}}
	c.grammar.Rules[0].Body = grammar.Seq(grammar.Call(c.rule(root)), grammar.Call(ruleEnd))
	for len(c.queue) > 0 {
		t := c.queue[0]
		c.queue = c.queue[1:]
		s, err := c.meaning(t)
		if err != nil {
			return err
		}
		body, err := c.body(s)
		if err != nil {
			if len(t) > 0 {
				err = at(t[0].schema, err)
			}
			return err
		}
		c.grammar.Rules[c.rules[t.key()]].Body = body
		if len(c.grammar.Rules) > mostRules {
			return &grammar.TooLarge{What: "rules", Most: mostRules}
		}
	}
	c.spacing()
	return nil
}

// rule returns the number of the rule of the values that meet all terms.
func (c *compiler) rule(t terms) int {
	k := t.key()
	n, ok := c.rules[k]
	if !ok {
		n = len(c.grammar.Rules)
		c.rules[k] = n
		c.grammar.Rules = append(c.grammar.Rules, grammar.Rule{Name: "value " + k})
		c.queue = append(c.queue, t)
	}
	return n
}

// body is the expression of a set.
func (c *compiler) body(s *set) (grammar.Expr, error) {
	var ways []grammar.Expr
	for _, x := range []struct {
		in   bool
		text string
	}{{s.null, "null"}, {s.yes, "true"}, {s.no, "false"}} {
		if x.in {
			ways = append(ways, grammar.Text(x.text))
		}
	}
	if s.num != nil && !s.num.Empty() {
		ways = append(ways, grammar.Word(c.lexeme(s.num, grammar.Plain, 0, -1)))
	}
	for _, t := range s.strs {
		if err := c.left.Take(10 + 10*len(t.words)); err != nil {
			return grammar.Expr{}, err
		}
		ways = append(ways, c.text(t))
	}
	for _, a := range s.arrs {
		x, err := c.shared("array", a.any(), func() (grammar.Expr, error) { return c.arrayBody(a) })
		if err != nil {
			return x, err
		}
		ways = append(ways, x)
	}
	for _, o := range s.objs {
		x, err := c.shared("object", o.any(), func() (grammar.Expr, error) { return c.objectBody(o) })
		if err != nil {
			return x, err
		}
		ways = append(ways, x)
	}
	return grammar.Alt(ways...), nil
}

// shared makes one rule for any array, or any object, which many schemas allow by not mentioning them.
func (c *compiler) shared(name string, is bool, body func() (grammar.Expr, error)) (grammar.Expr, error) {
	if !is {
		return body()
	}
	n, ok := c.rules[name]
	if !ok {
		n = len(c.grammar.Rules)
		c.rules[name] = n
		c.grammar.Rules = append(c.grammar.Rules, grammar.Rule{Name: "any " + name})
		x, err := body()
		if err != nil {
			return x, err
		}
		c.grammar.Rules[n].Body = x
	}
	return grammar.Call(n), nil
}

// lexeme returns the one of these properties, so that equal ones share their rule.
func (c *compiler) lexeme(d *lang.DFA, spelling grammar.Spelling, min, max int) *grammar.Lexeme {
	key := fmt.Sprintf("%p %d %d %d", d, spelling, min, max)
	if c.lexemes[key] == nil {
		c.lexemes[key] = &grammar.Lexeme{Lang: d, Spelling: spelling, Min: min, Max: max}
	}
	return c.lexemes[key]
}

func (c *compiler) text(t text) grammar.Expr {
	switch {
	case t.listed:
		var ways []grammar.Expr
		for _, w := range t.words {
			ways = append(ways, grammar.Text(quote(w)))
		}
		return grammar.Alt(ways...)
	case t.lang != nil:
		return grammar.Word(c.lexeme(t.lang, grammar.JSON, 0, -1))
	}
	return grammar.Word(c.lexeme(c.anyLang, grammar.JSON, t.min, t.max))
}

// spacing makes the rules of what may stand between tokens: some blanks, and before the next line of an indented text
// as many as its deepest level takes.
func (c *compiler) spacing() {
	levels := c.grammar.Depth(mostLevels+1) - 1
	blanks := grammar.Repeat(grammar.Chars('\t', '\t', ' ', ' '), 0, mostBlanks)
	newline := grammar.Seq(grammar.Repeat(grammar.Text("\r"), 0, 1), grammar.Text("\n"))
	tabs := grammar.Repeat(grammar.Text("\t"), 0, levels)
	indent := grammar.Alt(tabs, grammar.Repeat(grammar.Text(" "), 1, levels*mostIndent))
	lines := grammar.Seq(grammar.Repeat(newline, 1, mostLines), indent)
	c.grammar.Rules[ruleBlanks].Body = blanks
	c.grammar.Rules[ruleSpace].Body = grammar.Seq(blanks, grammar.Repeat(lines, 0, 1))
	c.grammar.Rules[ruleEnd].Body = grammar.Seq(blanks, grammar.Repeat(newline, 0, 1))
}

// spaced allows white space behind an expression.
func spaced(x grammar.Expr) grammar.Expr { return grammar.Seq(x, grammar.Call(ruleSpace)) }

// keyed is a member of an object.
func (c *compiler) keyed(key grammar.Expr, t terms) grammar.Expr {
	return grammar.Seq(key, grammar.Call(ruleBlanks), spaced(grammar.Text(":")), c.value(t))
}

func (c *compiler) value(t terms) grammar.Expr { return spaced(grammar.Call(c.rule(t))) }

func (c *compiler) objectBody(o *object) (grammar.Expr, error) {
	if max(o.min, o.max) > mostItems {
		return grammar.Expr{}, fmt.Errorf("minProperties or maxProperties above %d", mostItems)
	}
	for _, k := range slices.Concat(o.order, o.free) {
		if err := c.left.Take(o.asking(k)); err != nil {
			return grammar.Expr{}, err
		}
	}
	l := &grammar.List{Sep: spaced(grammar.Text(",")), Min: o.min, Max: o.max}
	for _, k := range o.order {
		if x, ok := c.member(o, k); ok || o.required[k] {
			l.Items = append(l.Items, grammar.Item{Expr: x, Required: o.required[k]})
		}
	}
	for _, k := range o.free {
		x, _ := c.member(o, k)
		if len(o.free) <= mostFree {
			l.Free = append(l.Free, x)
		} else {
			l.Items = append(l.Items, grammar.Item{Expr: x, Required: true})
		}
	}
	var err error
	if l.Others, err = c.others(o); err != nil {
		return grammar.Expr{}, err
	}
	return grammar.Seq(spaced(grammar.Text("{")), grammar.Members(l), grammar.Text("}")), nil
}

// member is a key and its value; not ok where the key may not be.
func (c *compiler) member(o *object, key string) (grammar.Expr, bool) {
	t, ok := o.value(key)
	if !ok || c.never(t) {
		return grammar.Fail(), false
	}
	return c.keyed(grammar.Text(quote(key)), t), true
}

// others are the members whose keys are not named, by which patterns their keys match.
func (c *compiler) others(o *object) (grammar.Expr, error) {
	keys := c.anyLang
	var err error
	for _, n := range o.names {
		if keys, err = lang.And(keys, n, &c.left); err != nil {
			return grammar.Expr{}, err
		}
	}
	if c.never(o.unmatched(nil)) && len(o.patterns) == 0 { // no others: spare the difference
		return grammar.Fail(), nil
	}
	if named := append(slices.Clone(o.order), o.free...); len(named) > 0 {
		d, err := lang.Words(named, &c.left)
		if err == nil {
			keys, err = lang.Minus(keys, d, &c.left)
		}
		if err != nil {
			return grammar.Expr{}, err
		}
	}
	exprs := map[string]*lang.DFA{}
	for _, p := range o.patterns {
		exprs[p.expr] = p.keys
	}
	if len(exprs) > mostPatterns {
		return grammar.Expr{}, fmt.Errorf("more than %d patternProperties of one object", mostPatterns)
	}
	var ways []grammar.Expr
	sorted := slices.Sorted(maps.Keys(exprs))
	err = c.split(keys, exprs, sorted, map[string]bool{}, func(keys *lang.DFA, met map[string]bool) {
		t := o.unmatched(met)
		for _, p := range o.patterns {
			if met[p.expr] {
				t = t.and(p.terms...)
			}
		}
		if !c.never(t) {
			key := grammar.Word(c.lexeme(keys, grammar.JSON, 0, -1))
			ways = append(ways, c.keyed(key, t))
		}
	})
	return grammar.Alt(ways...), err
}

// unmatched is what the values of unnamed keys must meet that match these patterns, apart from the patterns.
func (o *object) unmatched(met map[string]bool) (t terms) {
	for _, r := range o.rest {
		if !slices.ContainsFunc(r.patterns, func(e string) bool { return met[e] }) {
			t = t.and(r.terms...)
		}
	}
	return t
}

// split divides keys by which expressions they match.
func (c *compiler) split(keys *lang.DFA, exprs map[string]*lang.DFA, left []string, met map[string]bool,
	yield func(keys *lang.DFA, met map[string]bool)) error {
	if keys.Empty() {
		return nil
	}
	if len(left) == 0 {
		yield(keys, met)
		return nil
	}
	with, err := lang.And(keys, exprs[left[0]], &c.left)
	if err != nil {
		return err
	}
	without, err := lang.Minus(keys, exprs[left[0]], &c.left)
	if err != nil {
		return err
	}
	met[left[0]] = true
	err = c.split(with, exprs, left[1:], met, yield)
	delete(met, left[0])
	if err != nil {
		return err
	}
	return c.split(without, exprs, left[1:], met, yield)
}

func (c *compiler) arrayBody(a *array) (grammar.Expr, error) {
	if max(a.min, a.max, len(a.prefix)) > mostItems {
		return grammar.Expr{}, fmt.Errorf("minItems or maxItems above %d", mostItems)
	}
	if a.unique && (a.max < 0 || a.max > 1) {
		return grammar.Expr{}, errors.New("uniqueItems is not supported, since no grammar knows what an array held before: " +
			"leave it out, and drop what is there twice")
	}
	if len(a.contains) > 1 {
		return grammar.Expr{}, errors.New("more than one contains is not supported")
	}
	inside := c.items(a)
	if len(a.contains) == 1 {
		if in := a.contains[0]; max(in.min, in.max, 1)*max(a.min, a.max, 1) > mostItems {
			return grammar.Expr{}, fmt.Errorf("minItems or maxItems times minContains or maxContains above %d", mostItems)
		}
		inside = c.containing(a, a.contains[0])
	}
	return grammar.Seq(spaced(grammar.Text("[")), inside, grammar.Text("]")), nil
}

// items are those of an array from place i on.
func (c *compiler) items(a *array) grammar.Expr {
	l := &grammar.List{Sep: spaced(grammar.Text(",")), Min: a.min, Max: a.max, Others: c.value(a.items)}
	if len(a.prefix) == 0 {
		return grammar.Members(l)
	}
	n := len(a.prefix)
	most := -1
	if a.max >= 0 {
		most = max(0, a.max-n)
	}
	tail := grammar.Repeat(grammar.Seq(l.Sep, l.Others), max(0, a.min-n), most)
	for i := n - 1; i >= 0; i-- {
		x := grammar.Seq(c.value(a.prefix[i]), tail)
		if i > 0 {
			x = grammar.Seq(l.Sep, x)
		}
		switch {
		case a.max >= 0 && i >= a.max:
			x = grammar.Empty()
		case i >= a.min:
			x = grammar.Repeat(x, 0, 1)
		}
		tail = x
	}
	return tail
}

// containing are the items of an array of which some meet terms: a rule for each number of items and of those.
func (c *compiler) containing(a *array, in contained) grammar.Expr {
	places, found := max(len(a.prefix), a.min, 1), in.min
	if a.max >= 0 {
		places = a.max
	}
	if in.max >= 0 {
		found = in.max + 1
	}
	type state struct{ at, found int }
	rules := map[state]int{}
	var rule func(s state) int
	rule = func(s state) int {
		if n, ok := rules[s]; ok {
			return n
		}
		n := len(c.grammar.Rules)
		rules[s] = n
		c.grammar.Rules = append(c.grammar.Rules, grammar.Rule{Name: "items"})
		var ways []grammar.Expr
		if s.at >= a.min && s.found >= in.min {
			ways = append(ways, grammar.Empty())
		}
		item := func(t terms, next state) {
			if next.at > places {
				if next.at = places; a.max >= 0 {
					return
				}
			}
			if next.found > found {
				next.found = found
			}
			if in.max >= 0 && next.found > in.max {
				return
			}
			x := grammar.Seq(c.value(t), grammar.Call(rule(next)))
			if s.at > 0 {
				x = grammar.Seq(spaced(grammar.Text(",")), x)
			}
			ways = append(ways, x)
		}
		t := a.item(s.at)
		item(t.and(in.terms...), state{s.at + 1, s.found + 1})
		if in.max < 0 {
			item(t, state{s.at + 1, s.found})
		} else if len(in.terms) == 1 {
			item(t.and(term{in.terms[0].schema, !in.terms[0].not}), state{s.at + 1, s.found})
		}
		c.grammar.Rules[n].Body = grammar.Alt(ways...)
		return n
	}
	return grammar.Call(rule(state{}))
}
