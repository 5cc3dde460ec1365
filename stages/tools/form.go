package tools

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Form is how a model writes calls, so that an answer can be kept to it: Open, a name, Mid and arguments, and then
// Next, a name and so on, or Close. In these texts Digit stands for a number and Letters for an id.
type Form struct {
	Open, Mid, Next, Close string
	Elements               *Elements // nil: arguments are an object of JSON
	Thought                [2]string // the marks around a thought that may come first; empty where there are none
}

// Placeholders in a form, for what differs from call to call.
const (
	Digit   = "\x01" // a number
	Letters = "\x02" // nine letters and digits
)

// until cuts the form off before a text that ends an answer.
func (f *Form) until(end string) {
	if end == "" {
		return
	}
	f.Close, _, _ = strings.Cut(f.Close, end)
	if strings.Contains(f.Next, end) {
		f.Next = "" // there is no second call in one answer
	}
	if e := f.Elements; e != nil {
		e.NoneClose, _, _ = strings.Cut(e.NoneClose, end)
	}
}

// Elements is how a model writes arguments one by one instead of as JSON: First, a key, Set and a value, and then
// And, a key, and so on.
type Elements struct {
	First, Set, And     string
	Other               string // instead of Set, before a value that is no text
	Quote, End          string // around a value that is a text
	JSON                bool   // a text is a string of JSON
	Without             string // what a text that is no JSON string must not contain
	NoneNext, NoneClose string // what follows the name of a call without arguments, instead of Next and Close
}

// Form finds out how a template writes calls, by rendering examples. It is nil if that cannot be told from them, or
// if the parser cannot read such calls. ends are the texts of tokens that end an answer.
func (s *Syntax) Form(template string, render Render, ends []string) *Form {
	for _, id := range [...]string{"qqid0123%[2]d", "functions.%[1]s:%[2]d"} {
		w := writer{render: render, id: id}
		f := w.form()
		if f == nil {
			continue
		}
		for _, end := range ends {
			f.until(end)
		}
		if f.reads(s) {
			f.Thought = s.thoughtIn(template)
			return f
		}
	}
	return nil
}

// thoughtIn returns the marks around a thought that a template shows.
func (s *Syntax) thoughtIn(template string) (marks [2]string) {
	if s.channels != nil {
		return s.channels.thought
	}
	for _, t := range s.thinks {
		if strings.Contains(template, t.open) && strings.Contains(template, t.close) {
			return [2]string{t.open, t.close}
		}
	}
	return marks
}

// writer renders, with a template, calls of functions that no template knows.
type writer struct {
	render Render
	id     string // format of ids, from a name and a number
	plain  string // an answer without calls
}

// The names and values that are looked for in the rendered text, with keys in alphabetical order.
const (
	callee, another = "qqfunction", "qqsecond"
	keyA, valueA    = "qqfirst", "qqvalue"
	keyB, valueB    = "qqnext", "qqother"
	keyC, valueC    = "qqsum", "90817263"
)

// nameFirst finds calls whose arguments stand before the name (Mistral Nemo); they are rewritten to have the name
// first, since it decides which arguments are allowed.
var nameFirst = regexp.MustCompile(`("\w+": )(\{"` + keyA + `"[^{}]*\}|\{\})(, )("\w+": )"(` + callee + `|` + another + `)"`)

// call renders calls, with arguments or without.
func (w *writer) call(arguments bool, names ...string) (string, bool) {
	type object = map[string]any
	answer := object{"role": "assistant", "content": probeText}
	args := object{}
	if arguments {
		args = object{keyA: valueA, keyB: valueB, keyC: json.RawMessage(valueC)}
	}
	list, calls := []object{}, []object{}
	for _, name := range [...]string{callee, another} {
		list = append(list, object{"type": "function", "function": object{"name": name, "description": "x", "parameters": object{
			"type": "object", "properties": object{keyA: object{"type": "string"}, keyB: object{"type": "string"},
				keyC: object{"type": "integer"}}}}})
	}
	for i, name := range names {
		calls = append(calls, object{"id": fmt.Sprintf(w.id, name, i), "type": "function",
			"function": object{"name": name, "arguments": args}})
	}
	if len(calls) > 0 {
		answer["content"], answer["tool_calls"] = "", calls
	}
	text, err := json.Marshal(object{"tools": list, "messages": []object{{"role": "user", "content": "x"}, answer}})
	if err != nil {
		return "", false
	}
	out, err := w.render(string(text))
	if err != nil || len(names) == 0 {
		return out, err == nil
	}
	return w.general(nameFirst.ReplaceAllString(between(out, w.plain), `$4"$5"$3$1$2`)), true
}

func (w *writer) form() *Form {
	var ok bool
	if w.plain, ok = w.call(false); !ok {
		return nil
	}
	one, ok := w.call(true, callee)
	open, rest, found := strings.Cut(one, callee)
	if !ok || !found {
		return nil
	}
	for _, t := range usualThinks { // an empty one may come first
		if at := strings.LastIndex(open, t.close); at >= 0 {
			open = open[at+len(t.close):]
		}
	}
	f := &Form{Open: strings.TrimLeft(open, white)}
	two, _ := w.call(true, callee, another)
	_, rest2, _ := strings.Cut(two, callee)
	next, last, several := strings.Cut(rest2, another)
	if !several {
		next, last = "", ""
	}
	if !f.object(rest, next, last) && !f.elements(rest, next, last, w) {
		return nil
	}
	f.Close = strings.TrimRight(f.Close, white)
	return f
}

// general replaces ids without names in them by Letters.
func (w *writer) general(text string) string {
	for i, name := range [...]string{callee, another} {
		if id := fmt.Sprintf(w.id, name, i); !strings.Contains(id, name) {
			text = strings.ReplaceAll(text, id, Letters)
		}
	}
	return text
}

// object looks for arguments in JSON behind the names of one call, of the first of two, and of the last of them.
func (f *Form) object(rest, next, last string) bool {
	cut := func(text string) (mid, after string, ok bool) {
		at := strings.IndexByte(text, '{')
		if at < 0 {
			return "", "", false
		}
		object, n := objectAt(text[at:])
		if n == 0 || object[keyA] != valueA || object[keyB] != valueB {
			return "", "", false
		}
		return text[:at], text[at+n:], true
	}
	var ok bool
	if f.Mid, f.Close, ok = cut(rest); !ok {
		return false
	}
	if _, after, ok := cut(next); ok {
		if mid, _, ok := cut(last); ok {
			f.Next, f.Mid = after, numberedAs(f.Mid, mid)
		}
	}
	if at := strings.Index(f.Open, `"0"`); at >= 0 && strings.Contains(f.Next, `"1"`) {
		f.Open = f.Open[:at] + `"` + Digit + `"` + f.Open[at+3:]
		f.Next = strings.Replace(f.Next, `"1"`, `"`+Digit+`"`, 1)
	}
	return true
}

// numberedAs is a text of the first call, with Digit in place of the one number in which the second call differs.
func numberedAs(first, second string) string {
	for i := range first {
		if first[i] == '0' && first[:i]+"1"+first[i+1:] == second {
			return first[:i] + Digit + first[i+1:]
		}
	}
	return first
}

// elements looks for arguments that are written one by one.
func (f *Form) elements(rest, next, last string, w *writer) bool {
	e := &Elements{}
	var ok [6]bool
	var more, number string
	e.First, rest, ok[0] = strings.Cut(rest, keyA)
	e.Set, rest, ok[1] = strings.Cut(rest, valueA)
	e.And, rest, ok[2] = strings.Cut(rest, keyB)
	more, rest, ok[3] = strings.Cut(rest, valueB)
	_, rest, ok[4] = strings.Cut(rest, keyC)
	number, f.Close, ok[5] = strings.Cut(rest, valueC)
	if ok != [6]bool{true, true, true, true, true, true} || more != e.Set || strings.Contains(e.And, keyA) {
		return false
	}
	e.Other = number
	if quote, ok := strings.CutPrefix(e.Set, number); ok && quote != "" && strings.HasPrefix(e.And, quote) {
		e.Quote, e.End = quote, quote // numbers have none
		e.Set, e.And = number, e.And[len(quote):]
	}
	if e.Quote == `"` || e.Quote == "'" { // which escapes are as those of JSON
		e.JSON, e.Quote, e.End = true, "", ""
	}
	if _, after, ok := strings.Cut(next, valueC); ok && strings.Contains(last, valueC) {
		f.Next = after
	}
	if !e.JSON {
		if e.Without = e.End; e.End == "" {
			e.Without = strings.TrimSpace(common(e.And, f.Close, false))
		}
		if e.Without == "" {
			return false
		}
	}
	none, ok1 := w.call(false, callee)
	_, none, found := strings.Cut(none, callee)
	if !ok1 || !found {
		return false
	}
	e.NoneClose = strings.TrimRight(none, white)
	if f.Next != "" {
		both, _ := w.call(false, callee, another)
		_, both, _ = strings.Cut(both, callee)
		if e.NoneNext, _, found = strings.Cut(both, another); !found {
			return false
		}
	}
	f.Elements = e
	return true
}

// reads says whether the parser understands calls in this form.
func (f *Form) reads(s *Syntax) bool {
	set, err := NewSet([]Tool{{Name: callee, Parameters: `{"type":"object","properties":{"` + keyA + `":{"type":"string"},"` + keyC +
		`":{"type":"integer"}}}`}, {Name: another}})
	if err != nil {
		return false
	}
	text := "\n\n" + f.Open + callee // as some models begin
	if e := f.Elements; e != nil {
		value := e.Quote + valueA + e.End
		if e.JSON {
			value = `"` + valueA + `"`
		}
		text += e.First + keyA + e.Set + value + e.And + keyC + e.Other + valueC
	} else {
		text += f.Mid + `{"` + keyA + `": "` + valueA + `", "` + keyC + `": ` + valueC + `}`
	}
	calls := 1
	if f.Next != "" {
		calls++
		text += f.Next + another
		if e := f.Elements; e != nil {
			text += e.NoneClose
		} else {
			text += f.Mid + "{}" + f.Close
		}
	} else {
		text += f.Close
	}
	text = strings.NewReplacer(Digit, "7", Letters, "abcdef123").Replace(text)
	p := s.Parser("", set)
	got := ""
	for _, read := range [...]func() []Part{func() []Part { return p.Push([]byte(text)) }, p.End} {
		for _, x := range read() {
			switch x.Kind {
			case Call:
				got += x.Name + ":"
				calls--
			case Arguments:
				got += string(x.Text)
			default:
				return false
			}
		}
	}
	var object map[string]any
	first, _, _ := strings.Cut(strings.TrimPrefix(got, callee+":"), another)
	err = json.Unmarshal([]byte(first), &object)
	return calls == 0 && err == nil && object[keyA] == valueA && object[keyC] == 90817263.0
}
