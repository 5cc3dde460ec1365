// Package lineedit is a line editor without the terminal: it takes the bytes that a person types, and returns the
// text and the escape sequences that show it.
//
// It knows the usual keys, a history, completion, and pasted text of several lines (bracketed paste), which stays one
// text. Raw mode, signals and time are for its caller.
package lineedit

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// key is a typed character, or one of the keys below.
type key rune

// Keys that are no characters, beyond the last Unicode character.
const (
	up key = unicode.MaxRune + 1 + iota
	down
	left
	right
	wordLeft
	wordRight
	home
	end
	remove
	lineBreak // Alt-Enter, and Shift- or Ctrl-Enter where a terminal tells them from Enter
	pasteBegin
	pasteEnd
	unknown
)

// Control characters that are commands.
const (
	ctrlA, ctrlB, ctrlC, ctrlD, ctrlE, ctrlF, ctrlH  = 1, 2, 3, 4, 5, 6, 8
	tab, newline, ctrlK, ctrlL, enter, ctrlN, ctrlP  = 9, 10, 11, 12, 13, 14, 16
	ctrlR, ctrlS, ctrlU, ctrlW, ctrlY, ctrlZ, escape = 18, 19, 21, 23, 25, 26, 27
	ctrlG, space, rubout                             = 7, 32, 127
)

// Sequences that begin and end bracketed paste (xterm, control sequences).
const (
	PasteOn  = "\x1b[?2004h"
	PasteOff = "\x1b[?2004l"
)

// longestSequence exceeds the length of any key's sequence, in bytes; longer ones are no keys.
const longestSequence = 32

// next returns the first key of typed and its length in bytes. If the bytes end within a key, n is 0.
func next(typed []byte) (k key, n int) {
	switch {
	case len(typed) == 0:
		return 0, 0
	case typed[0] == escape:
		return sequence(typed)
	case !utf8.FullRune(typed):
		return 0, 0
	}
	r, n := utf8.DecodeRune(typed)
	if r == utf8.RuneError && n == 1 {
		return unknown, 1
	}
	return key(r), n
}

// sequence returns a key that begins with ESC: CSI, SS3, or a character with Alt.
func sequence(typed []byte) (key, int) {
	if len(typed) < 2 {
		return 0, 0
	}
	switch typed[1] {
	case '[', 'O':
	case '\r', '\n':
		return lineBreak, 2
	case 'b':
		return wordLeft, 2
	case 'f':
		return wordRight, 2
	default:
		return unknown, 1 // a lone ESC
	}
	for i, c := range typed[2:] {
		if c >= '@' && c <= '~' {
			return named(string(typed[2:2+i]), c), i + 3
		}
		if c < ' ' || i > longestSequence {
			return unknown, i + 2
		}
	}
	return 0, 0
}

// named returns the key of a sequence with these parameters and this last byte.
func named(parameters string, last byte) key {
	if last == 'u' && strings.HasPrefix(parameters, "13;") || last == '~' && strings.HasPrefix(parameters, "27;") &&
		strings.HasSuffix(parameters, ";13") { // Enter with Shift, Alt or Ctrl (xterm, modifyOtherKeys)
		return lineBreak
	}
	letters := map[byte]key{'A': up, 'B': down, 'C': right, 'D': left, 'H': home, 'F': end}
	numbers := map[string]key{"1": home, "3": remove, "4": end, "7": home, "8": end, "200": pasteBegin, "201": pasteEnd}
	if last == '~' {
		if k, ok := numbers[parameters]; ok {
			return k
		}
		return unknown
	}
	k, ok := letters[last]
	switch {
	case !ok:
		return unknown
	case strings.HasPrefix(parameters, "1;") && k == left:
		return wordLeft
	case strings.HasPrefix(parameters, "1;") && k == right:
		return wordRight
	}
	return k
}
