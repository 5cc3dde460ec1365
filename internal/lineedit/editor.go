package lineedit

import (
	"slices"
	"strings"
	"unicode"
)

// Outcome is the state of a text after some typing.
type Outcome int

// Outcomes. After all but Typing and Suspended, Text returns the text, and Begin starts a new one.
const (
	Typing      Outcome = iota
	Entered             // the text is complete
	Interrupted         // Ctrl-C
	Ended               // Ctrl-D, where there was no text
	Suspended           // Ctrl-Z; the text goes on after Resume
)

// mostText bounds a text, in characters. Pasted text beyond it is dropped.
const mostText = 1 << 20

// Editor is a text that is being typed. The zero value has no history and completes nothing.
// Wide: any key may change any of it.
type Editor struct {
	Prompt, More string                     // before the first line, and before others
	Complete     func(line string) []string // texts that a text may become
	Clear        bool                       // the screen is to be cleared (Ctrl-L); Draw does and forgets it

	history  []string
	text     []rune
	at       int // where the cursor is
	touched  bool
	pending  []byte // the beginning of a key
	pasting  bool
	returned bool // what was pasted last is a CR, of which an LF may be a part
	killed   []rune
	chosen   int     // of history; its length: none
	draft    []rune  // what was typed before one was chosen
	search   *search // nil: nothing is looked for
	sought   string  // what the last search looked for
	hint     string  // below the text, until the next key
	shown    picture
}

// Begin starts a new text. Bytes that were typed ahead are kept.
func (e *Editor) Begin(prompt, more string) {
	e.Prompt, e.More = prompt, more
	e.text, e.at, e.touched, e.hint, e.search = nil, 0, false, "", nil
	e.chosen, e.draft, e.shown = len(e.history), nil, picture{}
}

// Resume goes on with a text that was left behind for another program: it is drawn anew.
func (e *Editor) Resume() { e.shown = picture{} }

// Text returns the text so far.
func (e *Editor) Text() string { return string(e.text) }

// Touched reports whether anything but Ctrl-C was typed since Begin.
func (e *Editor) Touched() bool { return e.touched }

// Remember adds a text to the history.
func (e *Editor) Remember(text string) {
	if n := len(e.history); text != "" && (n == 0 || e.history[n-1] != text) {
		e.history = append(e.history, text)
	}
	e.chosen = len(e.history)
}

// Type takes bytes from a terminal, up to the end of the text; later bytes wait. A call with no bytes continues with
// those.
func (e *Editor) Type(typed []byte) Outcome {
	e.pending = append(e.pending, typed...)
	for {
		k, n := next(e.pending)
		if n == 0 {
			return Typing
		}
		e.pending = e.pending[n:]
		if outcome := e.press(k); outcome != Typing {
			return outcome
		}
	}
}

func (e *Editor) press(k key) Outcome {
	if k == pasteBegin || k == pasteEnd {
		e.pasting = k == pasteBegin
		return Typing
	}
	if e.pasting {
		e.paste(k)
		return Typing
	}
	e.hint = ""
	if e.search != nil && e.seek(k) {
		return Typing
	}
	switch {
	case k == ctrlC:
		return Interrupted
	case k == ctrlZ:
		return Suspended
	case k == ctrlD && len(e.text) == 0:
		return Ended
	case k == enter || k == newline:
		e.at = len(e.text)
		return Entered
	}
	e.touched = true
	if k >= space && k != rubout && k <= unicode.MaxRune {
		e.insert(rune(k))
		return Typing
	}
	if do := e.command(k); do != nil {
		do()
	}
	return Typing
}

// command returns the function of a key that is no character.
func (e *Editor) command(k key) func() {
	return map[key]func(){
		left: func() { e.at = e.before() }, ctrlB: func() { e.at = e.before() },
		right: func() { e.at = e.after() }, ctrlF: func() { e.at = e.after() },
		wordLeft: func() { e.at = e.wordBefore() }, wordRight: func() { e.at = e.wordAfter() },
		home: func() { e.at = e.lineBegin() }, ctrlA: func() { e.at = e.lineBegin() },
		end: func() { e.at = e.lineEnd() }, ctrlE: func() { e.at = e.lineEnd() },
		ctrlH: func() { e.cut(e.before(), e.at) }, rubout: func() { e.cut(e.before(), e.at) },
		remove: func() { e.cut(e.at, e.after()) }, ctrlD: func() { e.cut(e.at, e.after()) },
		ctrlK: func() { e.kill(e.at, e.lineEnd()) }, ctrlU: func() { e.kill(e.lineBegin(), e.at) },
		ctrlW: func() { e.kill(e.wordBefore(), e.at) }, ctrlY: func() { e.insert(e.killed...) },
		up: func() { e.vertical(-1) }, ctrlP: func() { e.vertical(-1) },
		down: func() { e.vertical(1) }, ctrlN: func() { e.vertical(1) },
		lineBreak: func() { e.insert('\n') },
		ctrlR:     e.beginSearch, tab: e.complete, ctrlL: func() { e.Clear = true },
	}[k]
}

// paste adds a key of pasted text. Line ends of the paste are line ends of the text.
func (e *Editor) paste(k key) {
	e.touched = true
	switch {
	case k == enter, k == newline && !e.returned:
		e.insert('\n')
	case k == tab, k >= space && k != rubout && k <= unicode.MaxRune && !unicode.IsControl(rune(k)):
		e.insert(rune(k))
	}
	e.returned = k == enter
}

func (e *Editor) insert(runes ...rune) {
	if len(e.text)+len(runes) > mostText {
		return
	}
	e.text = slices.Insert(e.text, e.at, runes...)
	e.at += len(runes)
}

func (e *Editor) cut(from, to int) {
	e.text = slices.Delete(e.text, from, to)
	e.at = from
}

func (e *Editor) kill(from, to int) {
	if from < to {
		e.killed = slices.Clone(e.text[from:to])
		e.cut(from, to)
	}
}

func (e *Editor) set(text []rune) { e.text, e.at = slices.Clone(text), len(text) }

// before returns the position left of the cursor: combining marks belong to the character before them.
func (e *Editor) before() int {
	at := max(e.at-1, 0)
	for at > 0 && columns(e.text[at]) == 0 {
		at--
	}
	return at
}

func (e *Editor) after() int {
	at := min(e.at+1, len(e.text))
	for at < len(e.text) && columns(e.text[at]) == 0 {
		at++
	}
	return at
}

func (e *Editor) wordBefore() int {
	at := e.at
	for at > 0 && unicode.IsSpace(e.text[at-1]) {
		at--
	}
	for at > 0 && !unicode.IsSpace(e.text[at-1]) {
		at--
	}
	return at
}

func (e *Editor) wordAfter() int {
	at := e.at
	for at < len(e.text) && unicode.IsSpace(e.text[at]) {
		at++
	}
	for at < len(e.text) && !unicode.IsSpace(e.text[at]) {
		at++
	}
	return at
}

func (e *Editor) lineBegin() int {
	at := e.at
	for at > 0 && e.text[at-1] != '\n' {
		at--
	}
	return at
}

func (e *Editor) lineEnd() int {
	at := e.at
	for at < len(e.text) && e.text[at] != '\n' {
		at++
	}
	return at
}

// vertical moves to the previous or next line, or to an older or newer text of the history.
func (e *Editor) vertical(step int) {
	begin, lineEnd := e.lineBegin(), e.lineEnd()
	switch {
	case step < 0 && begin > 0:
		column := e.at - begin
		e.at = begin - 1
		e.at = min(e.lineBegin()+column, begin-1)
	case step > 0 && lineEnd < len(e.text):
		column := e.at - begin
		e.at = lineEnd + 1
		e.at = min(lineEnd+1+column, e.lineEnd())
	default:
		e.recall(e.chosen + step)
	}
}

// recall shows a text of the history; the index after the last one is the text that was typed.
func (e *Editor) recall(i int) {
	if i < 0 || i > len(e.history) {
		return
	}
	if e.chosen == len(e.history) {
		e.draft = e.text
	}
	e.chosen = i
	if i == len(e.history) {
		e.set(e.draft)
	} else {
		e.set([]rune(e.history[i]))
	}
}

// complete adds the common beginning of all completions, or shows them.
func (e *Editor) complete() {
	if e.Complete == nil || e.at != len(e.text) {
		return
	}
	all := e.Complete(e.Text())
	if len(all) == 0 {
		return
	}
	common := []rune(all[0])
	for _, other := range all[1:] {
		n := 0
		for _, r := range other {
			if n == len(common) || common[n] != r {
				break
			}
			n++
		}
		common = common[:n]
	}
	if len(common) > len(e.text) {
		e.set(common)
	} else if len(all) > 1 {
		e.hint = strings.Join(all, "  ")
	}
}
