package lineedit

import (
	"fmt"
	"strings"
	"unicode"
)

// picture is a text as rows of a screen.
type picture struct {
	rows   []string
	widths []int // of the rows, in columns
	row    int   // where the cursor is
	column int
}

// Styles are the escape sequences around typed text and around hints; both may be empty.
type Styles struct{ Bold, Dim, Normal string }

// Draw returns the escape sequences that replace the text on a screen of width columns and height rows by its present
// state. It leaves the last column empty, since terminals differ about what follows it.
func (e *Editor) Draw(width, height int, s Styles) string {
	width, height = max(width, 4), max(height, 2)
	now := e.layout(width-1, e.hint)
	now.crop(height)
	var b strings.Builder
	if e.Clear {
		b.WriteString("\x1b[H\x1b[2J")
		e.Clear, e.shown = false, picture{}
	}
	if rise := e.shown.rise(width); rise > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", rise)
	}
	b.WriteString("\r\x1b[J")
	hints := len(now.rows) - now.hintRows(e.hint, width-1)
	for i, row := range now.rows {
		if i > 0 {
			b.WriteString("\r\n")
		}
		style := s.Bold
		if i >= hints {
			style = s.Dim
		}
		b.WriteString(style + row)
		if style != "" {
			b.WriteString(s.Normal)
		}
	}
	if rise := len(now.rows) - 1 - now.row; rise > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", rise)
	}
	b.WriteString("\r")
	if now.column > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", now.column)
	}
	e.shown = now
	return b.String()
}

// Leave returns the escape sequences that move the cursor below the text, to the beginning of a line.
func (e *Editor) Leave(width, height int, s Styles) string {
	e.at, e.hint = len(e.text), ""
	return e.Draw(width, height, s) + "\r\n"
}

// rise returns the number of rows between the first row and the cursor on a screen of width columns. A terminal that
// became narrower has wrapped rows.
func (p *picture) rise(width int) int {
	n := max(p.column-1, 0) / width // behind a full row, most terminals keep it
	for _, w := range p.widths[:min(p.row, len(p.widths))] {
		n += max((w+width-1)/width, 1)
	}
	return n
}

// crop removes rows far from the cursor for which a screen has no room.
func (p *picture) crop(height int) {
	if len(p.rows) <= height {
		return
	}
	from := min(max(p.row-height/2, 0), len(p.rows)-height)
	p.rows, p.widths, p.row = p.rows[from:from+height], p.widths[from:from+height], p.row-from
}

// hintRows returns how many of the last rows belong to the hint.
func (p *picture) hintRows(hint string, most int) int {
	if hint == "" {
		return 0
	}
	var h picture
	h.add(hint, most)
	return min(len(h.rows), len(p.rows)-p.row-1)
}

// layout breaks the text into rows of at most most columns.
func (e *Editor) layout(most int, hint string) (p picture) {
	line := e.Prompt
	seen := 0
	for i, text := range strings.Split(string(e.text), "\n") {
		if i > 0 {
			line = e.More
			seen++
		}
		runes := []rune(text)
		if e.at >= seen && e.at <= seen+len(runes) {
			before := picture{}
			before.add(line+string(runes[:e.at-seen]), most)
			last := len(before.rows) - 1
			p.row, p.column = len(p.rows)+last, before.widths[last]
		}
		p.add(line+text, most)
		seen += len(runes)
	}
	if hint != "" {
		p.add(hint, most)
	}
	return p
}

// add appends a line in as many rows as it needs.
func (p *picture) add(line string, most int) {
	var row strings.Builder
	width := 0
	for _, r := range line {
		w := columns(r)
		if width+w > most {
			p.rows, p.widths = append(p.rows, row.String()), append(p.widths, width)
			row.Reset()
			width = 0
		}
		if r == '\t' {
			row.WriteString("    ")
		} else {
			row.WriteRune(r)
		}
		width += w
	}
	p.rows, p.widths = append(p.rows, row.String()), append(p.widths, width)
}

// columns returns the number of columns of a character (Unicode Standard Annex 11, wide and fullwidth).
func columns(r rune) int {
	switch {
	case r == '\t':
		return 4
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r < 0x1100:
		return 1
	}
	for _, wide := range [][2]rune{
		{0x1100, 0x115f}, {0x2e80, 0x303e}, {0x3041, 0xa4cf}, {0xa960, 0xa97f}, {0xac00, 0xd7a3}, {0xf900, 0xfaff},
		{0xfe30, 0xfe6f}, {0xff01, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff},
		{0x20000, 0x3fffd},
	} {
		if r >= wide[0] && r <= wide[1] {
			return 2
		}
	}
	return 1
}
