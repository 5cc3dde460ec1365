package env

import "strings"

// Wrapper breaks a text that comes in pieces between words, so that a terminal breaks none of them. It holds back the
// last word until it is complete. Wide characters, such as Chinese, may be parted anywhere; a word that fits no line,
// such as an address, is left to the terminal, from which it is copied in one piece.
type Wrapper struct {
	Width int // columns of the screen; 0: nothing is broken

	at   int    // columns of the line so far
	gap  string // blanks before the word
	word string // last word so far
	long bool   // the word goes on with one that fits no line
}

// Take returns what can be written of a text and what was held back.
func (w *Wrapper) Take(text string) string {
	if w.Width <= 0 {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\n':
			w.flush(&out)
			out.WriteString(w.gap + "\n")
			w.gap, w.at, w.long = "", 0, false
		case r == ' ', r == '\t':
			w.flush(&out)
			w.gap += string(r)
		case columnsOf(r) > 1:
			w.flush(&out)
			w.long = false
			w.word = string(r)
			w.flush(&out)
		default:
			if w.word += string(r); columns(w.word) >= w.Width-1 { // it fits no line
				w.flush(&out)
				w.long = true
			}
		}
	}
	return out.String()
}

// Rest returns what was held back.
func (w *Wrapper) Rest() string {
	var out strings.Builder
	w.flush(&out)
	return out.String()
}

// flush writes the word, on a line of its own if it does not fit this one.
func (w *Wrapper) flush(out *strings.Builder) {
	if w.word == "" {
		return
	}
	gap, word := columns(w.gap)+7*strings.Count(w.gap, "\t"), columns(w.word)
	switch {
	case w.long && w.gap == "":
		out.WriteString(w.word)
		w.at = (w.at + word) % w.Width
	case w.at+gap+word > w.Width:
		if w.at > 0 {
			out.WriteByte('\n')
		} // else the line begins with more blanks than leave room for the word
		out.WriteString(w.word)
		w.at = word
	default:
		out.WriteString(w.gap + w.word)
		w.at += gap + word
	}
	w.gap, w.word, w.long = "", "", false
}
