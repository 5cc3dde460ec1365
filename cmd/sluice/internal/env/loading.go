package env

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// barDelay is how long a bar stays hidden: one that shows only for a moment tells nothing.
const barDelay = 200 * time.Millisecond

// Bar is a progress bar on standard error, in bytes or things done. It is erased at the end.
type Bar struct {
	e     *Env
	What  string
	Count bool  // things are counted, not bytes
	From  int64 // done before it began; does not count for the time left
	began time.Time
	shown bool // to a person
	line  StatusLine
}

// Progress begins a bar for a person who watches. Nobody else is shown one.
func (e *Env) Progress(what string) *Bar {
	return &Bar{e: e, What: what, began: e.Now(), shown: e.IsTerminal(e.Stderr)}
}

// Show draws the bar, once it has lasted longer than barDelay.
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

// Clear erases the bar.
func (l *Bar) Clear() { l.line.Clear() }

// The columns of a bar, of a name's beginning, and the least ones of a long name beside figures.
const (
	longBar, shortBar = 30, 8
	shortName         = 12
	leastName         = shortName + 7
)

// text fits a screen of so many columns: the share that is done comes first, then as room allows the name, the figures,
// a bar. The last column stays empty, since some terminals begin a new line after it.
func (l *Bar) text(done, total int64, took time.Duration, width int) string {
	size := BinarySize
	if l.Count {
		size = func(n int64) string { return strconv.FormatInt(n, 10) }
	}
	share := float64(max(done, 0)) / float64(total)
	percent, bar := fmt.Sprintf(" %d%%", int(100*share)), ""
	all := []string{fmt.Sprintf(" %s of %s", size(done), size(total)), ""} // what is said, the more the wider the screen is
	if done > l.From {
		speed := float64(done-l.From) / took.Seconds()
		left := time.Duration(float64(total-done) / speed * float64(time.Second)).Round(time.Second)
		all = []string{fmt.Sprintf("%s, %v left", all[0], left), all[0], ""}
		if !l.Count {
			rate := BinarySize(int64(speed)) + "/s"
			all = append([]string{fmt.Sprintf("%s, %s, %v left", all[1], rate, left)}, all[0], fmt.Sprintf(" %s, %v", rate, left), "")
		}
	}
	room := width - 1 - len(percent)
	name := min(columns(l.What), leastName)
	figures := all[slices.IndexFunc(all, func(f string) bool { return f == "" || room-len(f) >= name })]
	room -= len(figures)
	if n := min(room-columns(l.What)-3, longBar); n >= shortBar {
		full := int(share * float64(n))
		bar = " ▕" + strings.Repeat("█", full) + strings.Repeat("░", n-full) + "▏"
	}
	return shorten(l.What, room) + percent + bar + figures
}

// StatusLine is a line of a terminal that is rewritten in place, and erased at the end. It erases with spaces instead
// of escape sequences, which not every terminal wants (no-color.org).
type StatusLine struct {
	w     io.Writer // nil: nothing is shown
	text  string
	width int // of the screen, in columns
}

// Show replaces the line. A line wider than the screen would leave wrapped lines behind, so it is shortened.
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

// columns is how many columns of a screen a text takes at most.
func columns(text string) (n int) {
	for _, r := range text {
		n += columnsOf(r)
	}
	return n
}

// columnsOf is 2 for characters that may be wide, such as Chinese (Unicode Standard Annex 11): those from Hangul on,
// except punctuation and the blocks that bars are made of.
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

// Writer shows progress of what is written through it, and fails once its context ends.
type Writer struct {
	io.Writer
	ctx         context.Context
	bar         *Bar
	done, total int64
}

// Writing returns a Writer of total bytes. The caller sets the underlying writer.
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

// Clear erases the bar.
func (w *Writer) Clear() { w.bar.Clear() }
