package env

import (
	"io"
	"strconv"
	"strings"
	"unicode"
)

// Pane is where text is shown.
type Pane struct {
	W    io.Writer
	ANSI bool // it understands escape sequences
}

// Pane returns a stream as a place for text. It has no escape sequences if NO_COLOR is set, to whatever value
// (no-color.org).
func (e *Env) Pane(stream io.Writer) Pane {
	term, _ := e.Lookup("TERM")
	plain, _ := e.Lookup("NO_COLOR")
	return Pane{W: stream, ANSI: e.IsTerminal(stream) && term != "" && term != "dumb" && plain == ""}
}

// The escape sequences that are used: ECMA-48, SGR.
const (
	Bold   = "\x1b[1m"
	Dim    = "\x1b[2m"
	Normal = "\x1b[22m" // neither bold nor dim
)

// Dimmed shows text dim, as a side note.
func (p Pane) Dimmed(text string) string {
	if !p.ANSI {
		return text
	}
	return Dim + text + Normal
}

// Harmless drops control characters, so that models and files cannot control the terminal.
func Harmless(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return -1
	}
	return r
}

// Wrapped breaks lines between words, so that none fills so many columns, and indents what follows as the line. Rows of
// a table keep their last column beside the others, or get it below them where there is little room.
func Wrapped(text string, width int) string {
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
				out = append(out, Wrapped(strings.TrimRight(line[:at], " "), width))
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

// Visible escapes control characters, which a terminal would obey: errors quote files of strangers.
func Visible(text string) string {
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
