package schema

import (
	"unicode/utf8"

	"github.com/sluice-ai/sluice/stages/grammar/lang"
)

// text is a set of strings: a list of words, or a language, or any string of min to max characters.
type text struct {
	words    []string // if listed
	listed   bool
	lang     *lang.DFA // nil: any, within the bounds
	min, max int       // max < 0: no bound
}

func anyText() text { return text{max: -1} }

func (t text) any() bool { return !t.listed && t.lang == nil && t.min == 0 && t.max < 0 }

func (t text) empty() bool {
	switch {
	case t.listed:
		return len(t.words) == 0
	case t.lang != nil:
		return t.lang.Empty()
	}
	return t.max >= 0 && t.max < t.min
}

// has says whether a word is in a set that is not listed.
func (t text) has(word string) bool {
	if t.lang != nil {
		return t.lang.Match(word)
	}
	n := utf8.RuneCountInString(word)
	return n >= t.min && (t.max < 0 || n <= t.max)
}

// dfa returns the set as a language.
func (c *compiler) dfa(t text) (*lang.DFA, error) {
	switch {
	case t.listed:
		return lang.Words(t.words, &c.left)
	case t.lang != nil:
		return t.lang, nil
	case t.any():
		return c.anyLang, nil
	}
	return lang.Lengths(t.min, t.max, &c.left)
}

// filter keeps those of the words listed in t that by has, or those that it has not.
func (c *compiler) filter(t, by text, has bool) (text, error) {
	out, steps := text{listed: true}, 5*(len(t.words)+len(by.words))
	for _, w := range t.words {
		steps += len(w)
	}
	if err := c.left.Take(steps); err != nil {
		return out, err
	}
	known := map[string]bool{}
	for _, w := range by.words {
		known[w] = true
	}
	for _, w := range t.words {
		if in := known[w] || !by.listed && by.has(w); in == has {
			out.words = append(out.words, w)
		}
	}
	return out, nil
}

func (c *compiler) andText(a, b text) (text, error) {
	switch {
	case a.any():
		return b, nil
	case b.any():
		return a, nil
	case a.listed:
		return c.filter(a, b, true)
	case b.listed:
		return c.filter(b, a, true)
	case a.lang == nil && b.lang == nil:
		out := text{min: max(a.min, b.min), max: a.max}
		if b.max >= 0 && (a.max < 0 || b.max < a.max) {
			out.max = b.max
		}
		return out, nil
	}
	return c.joined(lang.And, a, b)
}

// joined is what an operation on languages makes of two texts.
func (c *compiler) joined(op func(a, b *lang.DFA, left *lang.Budget) (*lang.DFA, error), a, b text) (text, error) {
	x, err := c.dfa(a)
	if err != nil {
		return text{}, err
	}
	y, err := c.dfa(b)
	if err != nil {
		return text{}, err
	}
	d, err := op(x, y, &c.left)
	return text{lang: d}, err
}

func (c *compiler) minusTexts(a, b []text) (out []text, err error) {
	out = a
	for _, y := range b {
		var rest []text
		for _, x := range out {
			z, err := c.minusText(x, y)
			if err != nil {
				return nil, err
			}
			if !z.empty() {
				rest = append(rest, z)
			}
		}
		out = rest
	}
	return out, nil
}

func (c *compiler) minusText(a, b text) (text, error) {
	switch {
	case b.any():
		return text{listed: true}, nil
	case a.listed:
		return c.filter(a, b, false)
	}
	return c.joined(lang.Minus, a, b)
}

// orTexts returns the union as one language.
func (c *compiler) orTexts(list []text) (*lang.DFA, error) {
	sum := lang.None()
	for _, t := range list {
		d, err := c.dfa(t)
		if err != nil {
			return nil, err
		}
		if sum, err = lang.Or(sum, d, &c.left); err != nil {
			return nil, err
		}
	}
	return sum, nil
}
