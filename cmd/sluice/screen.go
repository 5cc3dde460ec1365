package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// pane is where text is shown.
type pane struct {
	w    io.Writer
	ansi bool // it understands escape sequences
}

// ansi says whether a stream is a terminal that understands escape sequences, and whose owner wants them:
// NO_COLOR, whatever it is set to, says no (no-color.org).
func ansi(e *env, stream io.Writer) bool {
	term, _ := e.lookup("TERM")
	plain, _ := e.lookup("NO_COLOR")
	return e.isTerminal(stream) && term != "" && term != "dumb" && plain == ""
}

// The escape sequences that are used: ECMA-48, SGR.
const (
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	normal = "\x1b[22m" // neither bold nor dim
)

// dimmed shows text in the background.
func (p pane) dimmed(text string) string {
	if !p.ansi {
		return text
	}
	return dim + text + normal
}

// piece is a part of an answer.
type piece struct {
	text     string
	thinking bool // the model talks to itself
}

// voice writes one answer as it comes: thinking dimmed on a terminal and left out elsewhere, neither with empty lines
// around it.
type voice struct {
	pane
	thinking bool   // what the last piece was
	begun    bool   // some of it was written
	blank    string // white space at its end, written only if more follows
}

func (v *voice) say(p piece) error {
	if p.text == "" || p.thinking && !v.ansi {
		return nil
	}
	if p.thinking != v.thinking {
		if v.begun {
			fmt.Fprint(v.w, "\n\n")
		}
		*v = voice{pane: v.pane, thinking: p.thinking}
	}
	text := v.blank + p.text
	if !v.begun {
		text = strings.TrimLeft(text, "\r\n")
	}
	body := strings.TrimRightFunc(text, unicode.IsSpace)
	v.blank = text[len(body):]
	if body == "" {
		return nil
	}
	v.begun = true
	if v.ansi {
		body = strings.Map(harmless, body)
	}
	if p.thinking {
		body = v.dimmed(body)
	}
	_, err := io.WriteString(v.w, body)
	return err
}

// end ends the answer's last line.
func (v *voice) end() error {
	if !v.begun {
		return nil
	}
	_, err := io.WriteString(v.w, "\n")
	return err
}

// harmless drops control characters: models, and files, must not steer the terminal.
func harmless(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return -1
	}
	return r
}

// wrapped breaks lines between words, so that none fills so many columns, and goes on where the line began. Rows of a
// table keep their last column, or get it below the others where there is little room.
func wrapped(text string, width int) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if columns(line) < width {
			out = append(out, line)
			continue
		}
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		if len(indent) > width/2 {
			indent = ""
		}
		if at := strings.LastIndex(line, "  "); at >= 0 && strings.TrimSpace(line[:at]) != "" {
			if indent = strings.Repeat(" ", columns(line[:at+2])); len(indent) > width/2 {
				indent = "    "
				out = append(out, wrapped(strings.TrimRight(line[:at], " "), width))
				line = indent + line[at+2:]
			}
		}
		row, words := line[:len(line)-len(strings.TrimLeft(line, " "))], strings.Fields(line)
		if indent != "" && !strings.HasPrefix(line, indent) {
			at := strings.LastIndex(line, "  ") + 2
			row, words = line[:at], strings.Fields(line[at:])
		}
		for _, word := range words {
			if gap := min(len(strings.TrimSpace(row)), 1); columns(row)+gap+columns(word) >= width && row != indent {
				out, row = append(out, strings.TrimRight(row, " ")), indent
			}
			if strings.TrimSpace(row) != "" && !strings.HasSuffix(row, " ") {
				row += " "
			}
			row += word
		}
		out = append(out, row)
	}
	return strings.Join(out, "\n")
}

// visible spells out control characters, which a terminal would obey: errors name what stands in files of strangers.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || strconv.IsGraphic(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}
