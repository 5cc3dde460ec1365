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

// Options say how strict a grammar is.
type Options struct {
	// Formats makes known values of format binding. The standard calls them annotations, so that a schema may say
	// "date" of a string that is none; who generates wants a date.
	Formats bool

	// Draft7 reads schemas without $schema as draft 7: what stands beside $ref is not read. Else they are read as
	// what drafts 7 and 2020-12 have in common, and what stands beside $ref counts.
	Draft7 bool

	// Left is what several schemas may cost together; nil: the limits count for this one alone.
	Left *lang.Budget
}

// What a model can waste between two tokens of JSON is bounded, since one that has begun to write blanks may go on with
// them until its answer is cut. Writers of indented JSON need no more than this.
const (
	mostBlanks = 2  // behind a token, on its line
	mostLines  = 2  // ends of lines: one line may be empty
	mostIndent = 8  // blanks, or one tab, for each level that the schema lets values nest
	mostLevels = 10 // that are counted, where they may nest without end
)

// Compile makes the grammar of the JSON texts that a schema allows. An error names the place and the keyword that it
// cannot keep, or says that the schema is too large.
func Compile(text string, o Options, limits grammar.Limits) (*grammar.Grammar, error) {
	root, values, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	c, err := newCompiler(root, values, o, limits)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	err = c.build(one(root))
	if o.Left != nil {
		*o.Left = c.left
	}
	if err != nil {
		where := "#"
		if p := (*problem)(nil); errors.As(err, &p) {
			where = place(root, p.at)
		}
		return nil, fmt.Errorf("schema: %s: %w", where, err)
	}
	return &c.grammar, nil
}

// Any is the grammar of JSON objects, whatever is in them.
func Any(limits grammar.Limits) (*grammar.Grammar, error) {
	return Compile(`{"type":"object"}`, Options{}, limits)
}

func newCompiler(root *value, values *parser, o Options, limits grammar.Limits) (*compiler, error) {
	c := &compiler{options: o, values: values, anyLang: lang.Any(),
		left: lang.Budget{Steps: limits.Steps, States: limits.States},
		sets: map[int]*set{}, busy: map[int]bool{}, consts: map[*value]*value{}, nothing: map[string]emptiness{},
		langs: map[string]*lang.DFA{}, rules: map[string]int{}, lexemes: map[string]*grammar.Lexeme{}}
	if o.Left != nil {
		c.left = *o.Left
	}
	c.never0 = values.make(value{kind: isBool})
	var err error
	if c.draft, err = draftOf(root, o); err != nil {
		return nil, err
	}
	if c.index, err = newIndex(root, c.draft.old); err != nil {
		return nil, err
	}
	c.number, err = newNumbers(&c.left)
	return c, err
}

// place says where a value of a schema stands.
func place(root, v *value) string {
	way, ok := path(root, v)
	if !ok {
		return "" // it was made by us
	}
	slices.Reverse(way)
	return "#" + strings.Join(way, "")
}

// path finds the way from a value to one below it: its steps, the last first.
func path(from, to *value) (way []string, ok bool) {
	if from == to {
		return nil, true
	}
	for i, x := range from.list {
		if way, ok = path(x, to); ok {
			return append(way, "/"+strconv.Itoa(i)), true
		}
	}
	for _, k := range from.keys {
		if way, ok = path(from.fields[k], to); ok {
			return append(way, "/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(shown(k))), true
		}
	}
	return nil, false
}
