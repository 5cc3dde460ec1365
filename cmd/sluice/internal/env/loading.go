package env

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// barDelay is how long loading may take unseen: a bar that flashes up tells nobody anything.
const barDelay = 200 * time.Millisecond

// Bar shows bytes as they arrive, or things as they are done, on standard error. It leaves nothing behind.
type Bar struct {
	e     *Env
	What  string
	Count bool  // what is counted is no bytes
	From  int64 // what was done before it began, which says nothing of the time that is left
	began time.Time
	shown bool // to a person
	line  StatusLine
}

// Progress begins a bar for a person who watches. Nobody else is shown one.
func (e *Env) Progress(what string) *Bar {
	return &Bar{e: e, What: what, began: e.Now(), shown: e.IsTerminal(e.Stderr)}
}

// Show draws it, once that is worth it.
func (l *Bar) Show(done, total int64) {
	if !l.shown {
		return
	}
	took := l.e.Now().Sub(l.began)
	switch {
	case done >= total:
		l.Clear()
	case took >= barDelay:
		width := l.e.Columns(l.e.Stderr)
		l.line.Show(l.e.Stderr, l.text(done, total, took, width), width)
	}
}

// Clear takes the bar away, however far it came.
func (l *Bar) Clear() { l.line.Clear() }

// The columns of a bar, and what the name of something should have beside it.
const (
	longBar, shortBar = 30, 8
	shortName         = 12
)

// text is what a screen of so many columns has room for: how much of it is done before all else, then the name, the
// figures, a bar. Neither fills the last column, behind which some terminals begin a line.
func (l *Bar) text(done, total int64, took time.Duration, width int) string {
	size := BinarySize
	if l.Count {
		size = func(n int64) string { return strconv.FormatInt(n, 10) }
	}
	share := float64(max(done, 0)) / float64(total)
	percent, figures, bar := fmt.Sprintf(" %d%%", int(100*share)), fmt.Sprintf(" %s of %s", size(done), size(total)), ""
	if done > l.From {
		left := time.Duration(float64(took) / float64(done-l.From) * float64(total-done))
		figures += fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	room := width - 1 - len(percent)
	if room-len(figures) < shortName {
		figures = ""
	}
	room -= len(figures)
	if n := min(room-columns(l.What)-3, longBar); n >= shortBar {
		full := int(share * float64(n))
		bar = " ▕" + strings.Repeat("█", full) + strings.Repeat("░", n-full) + "▏"
	}
	return shorten(l.What, room) + percent + bar + figures
}

// StatusLine is a line of a terminal that is written again and again, and then taken away. It does with spaces what
// others do with escape sequences, which not every terminal wants (no-color.org).
type StatusLine struct {
	w     io.Writer // nil: nothing is shown
	text  string
	width int // of the screen, in columns
}

// Show replaces the line. What the screen has no room for would stay on it, in lines of its own: that is cut off.
func (s *StatusLine) Show(w io.Writer, text string, width int) {
	text = shorten(text, width-1)
	if text == s.text {
		return
	}
	left := min(columns(s.text), width-1) - columns(text) // of the line before
	fmt.Fprint(w, "\r", text, strings.Repeat(" ", max(left, 0)))
	s.w, s.text, s.width = w, text, width
}

func (s *StatusLine) Clear() {
	if s.w != nil {
		fmt.Fprint(s.w, "\r", strings.Repeat(" ", min(columns(s.text), s.width-1)), "\r")
	}
	*s = StatusLine{}
}

// columns is how many columns of a screen text takes at most.
func columns(text string) (n int) {
	for _, r := range text {
		n += columnsOf(r)
	}
	return n
}

// columnsOf counts two for what may be wide, such as Chinese (Unicode Standard Annex 11): from Hangul on, but for
// punctuation and the blocks that bars are made of.
func columnsOf(r rune) int {
	if r < 0x1100 || r >= 0x2000 && r < 0x2600 {
		return 1
	}
	return 2
}

// shorten leaves out the middle of a text that takes more than room columns: a path ends in its file.
func shorten(text string, room int) string {
	if columns(text) <= room {
		return text
	}
	if room < 1 {
		return ""
	}
	runes := []rune(text)
	head, tail, left := 0, len(runes), room-1
	for head < tail {
		next := runes[head]
		fromTail := head >= shortName
		if fromTail {
			next = runes[tail-1]
		}
		if left -= columnsOf(next); left < 0 {
			break
		}
		if fromTail {
			tail--
		} else {
			head++
		}
	}
	return string(runes[:head]) + "…" + string(runes[tail:])
}

// Writer is a writer that shows how far it is, and that can be stopped.
type Writer struct {
	io.Writer
	ctx         context.Context
	bar         *Bar
	done, total int64
}

// Writing begins such a writer, of total bytes. What it writes to comes after.
func (e *Env) Writing(ctx context.Context, what string, total int64) *Writer {
	return &Writer{ctx: ctx, bar: e.Progress(what), total: total}
}

func (w *Writer) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	w.bar.Show(w.done, w.total)
	n, err := w.Writer.Write(b)
	w.done += int64(n)
	return n, err
}

// Clear takes the bar away.
func (w *Writer) Clear() { w.bar.Clear() }
