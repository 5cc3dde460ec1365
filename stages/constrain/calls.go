package constrain

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/grammar/lang"
	"github.com/sluice-ai/sluice/stages/grammar/schema"
	"github.com/sluice-ai/sluice/stages/tools"
)

// caller makes the grammar of calls as a model writes them: names of tools, and arguments that their schemas allow.
// Of a tool that is not strict, and whose schema no grammar can express, any arguments are allowed.
type caller struct {
	form    *tools.Form
	grammar grammar.Grammar
	left    lang.Budget // what all schemas may cost together
	limits  grammar.Limits
	any     *grammar.Expr           // any object of JSON
	free    map[string]grammar.Expr // by mark: texts without the mark in them
}

// manySchemas is the budget of all schemas of a request, in budgets of one schema.
const manySchemas = 4

// Calls is the form of an answer that consists of calls of a request's tools. thought: see callsOf.
func Calls(writing *tools.Form, t *tools.Choice, thought bool) *Form {
	marks, elements := *writing, tools.Elements{}
	if marks.Elements != nil {
		marks.Elements, elements = nil, *writing.Elements
	}
	parts := []string{"calls", fmt.Sprintf("%#v%#v", marks, elements), fmt.Sprint(thought, t.Must, t.Single), t.Only}
	for _, x := range t.List {
		parts = append(parts, x.Name, x.Parameters, fmt.Sprint(x.Strict))
	}
	return &Form{Field: "tools", Key: KeyOf(parts...), Make: func() (*grammar.Form, error) {
		return callsOf(writing, t, thought)
	}}
}

// callsOf makes the grammar of an answer that consists of calls of a request's tools. thought allows a thought
// before them, if the model has marks for it. If all schemas together are too much for one grammar, and the choice
// is not Firm, only the names of tools are kept to, not the schemas.
func callsOf(form *tools.Form, t *tools.Choice, thought bool) (*grammar.Form, error) {
	made, err := formOf(form, t, thought, true)
	if err != nil && !t.Firm() {
		return formOf(form, t, thought, false)
	}
	return made, err
}

func formOf(form *tools.Form, t *tools.Choice, thought, kept bool) (*grammar.Form, error) {
	limits := grammar.DefaultLimits()
	c := caller{form: form, limits: limits, free: map[string]grammar.Expr{},
		left: lang.Budget{Steps: manySchemas * limits.Steps, States: limits.States}}
	const root, calls = 0, 1
	c.grammar.Rules = make([]grammar.Rule, 2)
	var ways []grammar.Expr
	for i := range t.List {
		tool := &t.List[i]
		if t.Only != "" && tool.Name != t.Only {
			continue
		}
		next := []grammar.Expr{c.text(form.Close)}
		if form.Next != "" && !t.Single {
			next = append(next, grammar.Seq(c.text(form.Next), grammar.Call(calls)))
		}
		way, err := c.call(tool, kept, grammar.Alt(next...), !t.Single)
		if err != nil {
			return nil, refusal.Of("the parameters of the tool %s: %v", tool.Name, err)
		}
		ways = append(ways, way)
	}
	blanks := grammar.Repeat(grammar.Text("\n"), 0, 2)
	body := []grammar.Expr{blanks, c.text(form.Open), grammar.Call(calls)}
	if thought && form.Thought[0] != "" {
		within, err := c.without(form.Thought[1])
		if err != nil {
			return nil, err
		}
		aside := grammar.Seq(c.text(form.Thought[0]), within, c.text(form.Thought[1]), blanks)
		body = append([]grammar.Expr{grammar.Repeat(aside, 0, 1)}, body...)
	}
	c.grammar.Rules[calls] = grammar.Rule{Name: "calls", Body: grammar.Alt(ways...)}
	c.grammar.Rules[root] = grammar.Rule{Name: "root", Body: grammar.Seq(body...)}
	made, err := grammar.Compile(&c.grammar, limits)
	if err != nil {
		return nil, refusal.Of("tools: calls of them: %v", err)
	}
	return made, nil
}

// text is the grammar of a text of the form, in which tools.Digit and tools.Letters stand for what varies.
func (c *caller) text(s string) grammar.Expr {
	var all []grammar.Expr
	for s != "" {
		at := strings.IndexAny(s, tools.Digit+tools.Letters)
		if at < 0 {
			at = len(s)
		}
		all = append(all, grammar.Text(s[:at]))
		if at < len(s) {
			one, times := grammar.Chars('0', '9', 'A', 'Z', 'a', 'z'), 9
			if s[at:at+1] == tools.Digit {
				one, times = grammar.Chars('0', '9'), 1
			}
			all = append(all, grammar.Repeat(one, times, times))
			at++
		}
		s = s[at:]
	}
	return grammar.Seq(all...)
}

// call is the grammar of a name, its arguments and what may follow.
func (c *caller) call(t *tools.Tool, kept bool, next grammar.Expr, several bool) (grammar.Expr, error) {
	name := grammar.Text(t.Name)
	e := c.form.Elements
	if e == nil {
		args, err := c.object(t, kept)
		return grammar.Seq(name, c.text(c.form.Mid), args, next), err
	}
	some, none, err := c.elements(t, kept)
	if err != nil {
		return some, err
	}
	ways := []grammar.Expr{grammar.Seq(name, some, next)}
	if none {
		ends := []grammar.Expr{c.text(e.NoneClose)}
		if c.form.Next != "" && several {
			ends = append(ends, grammar.Seq(c.text(e.NoneNext), grammar.Call(1)))
		}
		ways = append(ways, grammar.Seq(name, grammar.Alt(ends...)))
	}
	return grammar.Alt(ways...), nil
}

// schema is the grammar of the JSON that a schema allows.
func (c *caller) schema(text string) (grammar.Expr, error) {
	if err := c.left.Take(len(text) / 4); err != nil { // definitions that arguments share are compiled again for each
		return grammar.Expr{}, err
	}
	g, err := schema.Compile(text, schema.Options{Formats: true, Left: &c.left}, c.limits)
	if err != nil {
		return grammar.Expr{}, err
	}
	return c.grammar.Add(g), nil
}

// object is the grammar of arguments as one JSON object.
func (c *caller) object(t *tools.Tool, kept bool) (grammar.Expr, error) {
	if t.Parameters == "" {
		return grammar.Text("{}"), nil
	}
	if kept {
		text, err := objectOnly(t.Parameters)
		if err == nil {
			var args grammar.Expr
			if args, err = c.schema(text); err == nil {
				return args, nil
			}
		}
		if t.Strict {
			return grammar.Expr{}, err
		}
	}
	return c.anyObject()
}

// anyObject is the grammar of any JSON object.
func (c *caller) anyObject() (grammar.Expr, error) {
	if c.any == nil {
		g, err := schema.Any(c.limits)
		if err != nil {
			return grammar.Expr{}, err
		}
		object := c.grammar.Add(g)
		c.any = &object
	}
	return *c.any, nil
}

// objectOnly narrows a schema to objects.
func objectOnly(text string) (string, error) {
	var s struct{ Type any }
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return "", err
	}
	switch s.Type {
	case "object":
		return text, nil
	case nil:
		rest := strings.TrimSpace(text)[1:]
		if strings.HasPrefix(strings.TrimSpace(rest), "}") {
			return `{"type":"object"}`, nil
		}
		return `{"type":"object",` + rest, nil
	}
	return "", errors.New(`type: arguments are an object: want "object"`)
}

// elements is the grammar of arguments that are written one by one, of which there is at least one. none says
// whether a call without any is allowed as well.
func (c *caller) elements(t *tools.Tool, kept bool) (some grammar.Expr, none bool, err error) {
	if t.Parameters == "" {
		return grammar.Fail(), true, nil
	}
	e := c.form.Elements
	p, err := parametersOf(t.Parameters)
	if err != nil || !kept {
		if t.Strict && kept {
			return some, false, err
		}
		some, err = c.anyElements()
		return some, true, err
	}
	list := &grammar.List{Others: grammar.Fail(), Sep: c.text(e.And), Min: 1, Max: -1}
	none = true
	for _, key := range p.keys {
		value, err := c.value(p.fields[key], &p, t.Strict)
		if err != nil {
			return some, false, fmt.Errorf("%s: %w", key, err)
		}
		required := slices.Contains(p.required, key)
		none = none && !required
		item := grammar.Seq(grammar.Text(key), value)
		list.Items = append(list.Items, grammar.Item{Expr: item, Required: required})
	}
	if len(list.Items) == 0 {
		return grammar.Fail(), true, nil
	}
	return grammar.Seq(c.text(e.First), grammar.Members(list)), none, nil
}

// anyElements is the grammar of such arguments for a tool of which no more is known.
func (c *caller) anyElements() (grammar.Expr, error) {
	e := c.form.Elements
	value, err := c.words()
	key := grammar.Repeat(grammar.Chars('0', '9', 'A', 'Z', '_', '_', 'a', 'z'), 1, 64)
	one := grammar.Seq(key, value)
	return grammar.Seq(c.text(e.First), one, grammar.Repeat(grammar.Seq(c.text(e.And), one), 0, -1)), err
}

// value is the grammar of the value of an argument, with the mark before it.
func (c *caller) value(field any, p *parameters, strict bool) (grammar.Expr, error) {
	field = p.behind(field)
	if !c.form.Elements.JSON && p.text(field, mostAlternatives) {
		m, _ := field.(map[string]any)
		return c.wordsOf(m, strict)
	}
	value, err := c.schema(p.whole(field))
	if err != nil && !strict {
		return c.words()
	}
	return grammar.Seq(c.text(c.form.Elements.Other), value), err
}

// words is the grammar of any text as a value.
func (c *caller) words() (grammar.Expr, error) {
	e := c.form.Elements
	if e.JSON {
		object, err := c.anyObject()
		return grammar.Seq(c.text(e.Other), object), err
	}
	within, err := c.without(e.Without)
	return c.quoted(within), err
}

func (c *caller) quoted(within grammar.Expr) grammar.Expr {
	e := c.form.Elements
	return grammar.Seq(c.text(e.Set+e.Quote), within, c.text(e.End))
}

// without is the grammar of all texts in which a mark does not occur.
func (c *caller) without(mark string) (grammar.Expr, error) {
	if e, ok := c.free[mark]; ok {
		return e, nil
	}
	left := lang.Budget{Steps: c.limits.Steps, States: c.limits.States}
	d, err := unmarked(lang.Any(), mark, &left)
	if err != nil {
		return grammar.Expr{}, err
	}
	c.free[mark] = grammar.Word(&grammar.Lexeme{Lang: d, Max: -1})
	return c.free[mark], nil
}

func unmarked(of *lang.DFA, mark string, left *lang.Budget) (*lang.DFA, error) {
	marked, err := lang.Search(regexp.QuoteMeta(mark), left)
	if err != nil {
		return nil, err
	}
	return lang.Minus(of, marked, left)
}

// wordsOf is the grammar of the texts that a schema allows, as values; the schema allows strings.
func (c *caller) wordsOf(m map[string]any, strict bool) (grammar.Expr, error) {
	e := c.form.Elements
	list, listed := m["enum"].([]any)
	if v, ok := m["const"]; ok {
		list, listed = []any{v}, true
	}
	if err := c.left.Take(10 + 10*len(list)); err != nil {
		return grammar.Expr{}, err
	}
	if listed {
		var ways []grammar.Expr
		for _, x := range list {
			s, ok := x.(string)
			if !ok {
				other, err := json.Marshal(x)
				if err != nil {
					return grammar.Expr{}, err
				}
				ways = append(ways, grammar.Seq(c.text(e.Other), grammar.Text(string(other))))
			} else if !strings.Contains(s, e.Without) {
				ways = append(ways, c.quoted(grammar.Text(s)))
			}
		}
		return grammar.Alt(ways...), nil
	}
	if m["type"] != "string" {
		return c.words()
	}
	of, err := c.language(m)
	if err == nil {
		of, err = unmarked(of, e.Without, &c.left)
	}
	if err != nil {
		if strict {
			return grammar.Expr{}, err
		}
		return c.words()
	}
	return c.quoted(grammar.Word(&grammar.Lexeme{Lang: of, Max: -1})), nil
}

// language is the language of the strings that a schema allows, by pattern and length.
func (c *caller) language(m map[string]any) (of *lang.DFA, err error) {
	of = lang.Any()
	if pattern, ok := m["pattern"].(string); ok {
		if of, err = lang.Search(pattern, &c.left); err != nil {
			return nil, err
		}
	}
	least, err := lengthOf(m, "minLength", 0)
	if err != nil {
		return nil, err
	}
	most, err := lengthOf(m, "maxLength", -1)
	if err != nil || least == 0 && most < 0 {
		return of, err
	}
	lengths, err := lang.Lengths(least, most, &c.left)
	if err != nil {
		return nil, err
	}
	return lang.And(of, lengths, &c.left)
}

// lengthOf reads a bound on the length of a string; otherwise is for schemas without it.
func lengthOf(m map[string]any, key string, otherwise int) (int, error) {
	f, ok := m[key].(float64)
	switch {
	case !ok:
		return otherwise, nil
	case f < 0 || f != math.Trunc(f) || f > math.MaxInt32:
		return 0, fmt.Errorf("%s: want a whole number from 0 to %d", key, math.MaxInt32)
	}
	return int(f), nil
}
