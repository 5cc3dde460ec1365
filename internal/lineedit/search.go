package lineedit

import (
	"strings"
	"unicode"
)

// search is a search of the history while its term is typed, as readline has it.
type search struct {
	term   []rune
	text   []rune // what was there before, and where the cursor was
	at     int
	chosen int
	failed bool // nothing has the term
}

// beginSearch begins a search of older texts (Ctrl-R). What was typed so far comes back if the search is given up.
func (e *Editor) beginSearch() {
	e.search = &search{text: e.text, at: e.at, chosen: e.chosen}
	e.showSearch()
}

// seek takes a key of a search, and says whether that was all it meant. Keys that mean nothing to a search end it; what
// it has found is the text then.
func (e *Editor) seek(k key) bool {
	s := e.search
	switch {
	case k == ctrlR || k == ctrlS:
		if len(s.term) == 0 {
			s.term = []rune(e.sought)
			e.find(min(e.chosen, len(e.history)-1), -1)
			break
		}
		step := -1
		if k == ctrlS {
			step = 1
		}
		e.find(e.chosen+step, step)
	case k == rubout || k == ctrlH:
		if len(s.term) > 0 {
			s.term = s.term[:len(s.term)-1]
			e.find(len(e.history)-1, -1)
		}
	case k >= space && k <= unicode.MaxRune:
		s.term = append(s.term, rune(k))
		e.find(min(e.chosen, len(e.history)-1), -1)
	default:
		e.search, e.sought = nil, string(s.term)
		if k == ctrlG {
			e.chosen = s.chosen
			e.text, e.at = s.text, s.at
		}
		return k == ctrlG || k == unknown
	}
	e.touched = true
	e.showSearch()
	return true
}

// find shows the first text of the history from an index on that has the term, with the cursor there. If there is none,
// the last one found stays.
func (e *Editor) find(from, step int) {
	s := e.search
	s.failed = false
	if len(s.term) == 0 {
		return
	}
	for i := from; i >= 0 && i < len(e.history); i += step {
		before, _, found := strings.Cut(e.history[i], string(s.term))
		if !found {
			continue
		}
		if i != e.chosen || string(e.text) != e.history[i] { // it may have been edited
			e.recall(i)
		}
		e.at = len([]rune(before))
		return
	}
	s.failed = true
}

// showSearch shows the term below the text.
func (e *Editor) showSearch() {
	e.hint = "search: "
	if e.search.failed {
		e.hint = "nothing has: "
	}
	e.hint += string(e.search.term)
}
