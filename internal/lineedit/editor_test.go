package lineedit

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// typed gives an editor keys and returns what it says last.
func typed(e *Editor, keys string) Outcome {
	e.Begin("> ", ". ")
	return e.Type([]byte(keys))
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		keys, want string
		at         int
	}{
		{"hello", "hello", 5},
		{"a\x1b[Db\x1b[C!", "ba!", 3},
		{"ab\x7f\x08c", "c", 1},
		{"abc\x01\x04\x1b[3~", "c", 0},
		{"one two\x17three", "one three", 9},
		{"one two\x1b[1;5D\x0b!\x19", "one !two", 8},
		{"one two\x15x", "x", 1},
		{"one\x1bbx\x1bf!", "xone!", 5},
		{"é\x1b[D日", "日é", 1},
		{"e\u0301\x7fx", "x", 1},
		{"\x1b[200~a\r\nb\nc\rd\x03\te\x1b[201~!", "a\nb\nc\nd\te!", 10},
		{"\x1b[200~ab\ncd\x1b[201~\x1b[A!", "ab!\ncd", 3},
		{"\x1b[200~abc\nd\x1b[201~\x1b[A\x1b[B!", "abc\nd!", 6},
		{"\x1b[99~\x1bOH\x1b[38;5;1mx", "x", 1},
		{"\xff\x80x", "x", 1},
	} {
		e := &Editor{}
		require.Equal(t, Typing, typed(e, c.keys), "%q", c.keys)
		require.Equal(t, c.want, e.Text(), "%q", c.keys)
		require.Equal(t, c.at, e.at, "%q", c.keys)
		byByte := &Editor{} // keys may come in any pieces
		byByte.Begin("> ", ". ")
		for i := range len(c.keys) {
			byByte.Type([]byte{c.keys[i]})
		}
		require.Equal(t, c.want, byByte.Text(), "%q", c.keys)
	}
}

func TestOutcomes(t *testing.T) {
	e := &Editor{}
	require.Equal(t, Ended, typed(e, "\x04"))
	require.Equal(t, Entered, typed(e, "ab\x1b[D\rcd"))
	require.Equal(t, "ab", e.Text())
	e.Begin("> ", ". ")
	require.Equal(t, Typing, e.Type(nil), "what was typed ahead waits")
	require.Equal(t, "cd", e.Text())
	require.True(t, e.Touched())
	require.Equal(t, Interrupted, e.Type([]byte("\x03")))
	require.Equal(t, Interrupted, typed(e, "\x03"))
	require.False(t, e.Touched())
	require.Equal(t, Interrupted, typed(e, "x\x7f\x03"))
	require.True(t, e.Touched(), "something was typed, though nothing is left")
}

func TestHistory(t *testing.T) {
	e := &Editor{}
	for _, text := range []string{"one", "two", "two", "", "three"} {
		e.Remember(text)
	}
	for keys, want := range map[string]string{
		"dra\x10": "three", "dra\x10\x10": "two", "dra\x10\x10\x10\x10": "one", "dra\x10\x10\x0e\x0e": "dra",
	} {
		typed(e, keys)
		require.Equal(t, want, e.Text(), "%q", keys)
	}
}

// TestSearch: Ctrl-R looks for what is typed after it, as readline does.
func TestSearch(t *testing.T) {
	for _, c := range []struct {
		keys, want string
		at         int
	}{
		{"draft\x12", "draft", 5},
		{"draft\x12sto", "tell a story", 7},
		{"\x12o", "tell a story", 9},
		{"\x12o\x12", "two more", 2},
		{"\x12o\x12\x12", "one", 0},
		{"\x12o\x12\x12\x12", "one", 0},
		{"\x12o\x12\x12\x13", "two more", 2},
		{"\x12one\x7f\x7f", "tell a story", 9},
		{"\x12onex", "one", 0},
		{"draft\x12one\x07!", "draft!", 6},
		{"\x12one\x1b[C!", "o!ne", 2},
		{"\x12one\x05!", "one!", 4},
		{"\x12more\x1b[A", "one", 3},
		{"\x12one\x07\x12\x12", "one", 0},
		{"\x12zzz", "", 0},
		{"\x1b[200~\x12one\x1b[201~", "one", 3},
	} {
		e := &Editor{}
		for _, text := range []string{"one", "two more", "tell a story"} {
			e.Remember(text)
		}
		require.Equal(t, Typing, typed(e, c.keys), "%q", c.keys)
		require.Equal(t, c.want, e.Text(), "%q", c.keys)
		require.Equal(t, c.at, e.at, "%q", c.keys)
	}
	e := &Editor{}
	e.Remember("3 + 4")
	require.Equal(t, Entered, typed(e, "\x123 +\r"), "Enter takes what was found")
	require.Equal(t, "3 + 4", e.Text())
	typed(e, "\x12zzz")
	require.Contains(t, e.Draw(80, 24, Styles{}), "nothing has: zzz")
	typed(e, "\x123")
	require.Contains(t, e.Draw(80, 24, Styles{}), "search: 3")
	require.Equal(t, Interrupted, e.Type([]byte("\x03")))
	require.Equal(t, Typing, typed(&Editor{}, "\x12x\x12\x13\x7f\x7f"), "there is no history")
}

// TestLineBreak: Alt-Enter begins a line of the same text; so do others where a terminal can tell.
func TestLineBreak(t *testing.T) {
	for _, key := range []string{"\x1b\r", "\x1b\n", "\x1b[13;2u", "\x1b[13;3u", "\x1b[27;5;13~"} {
		e := &Editor{}
		require.Equal(t, Typing, typed(e, "a"+key+"b"), "%q", key)
		require.Equal(t, "a\nb", e.Text(), "%q", key)
		require.Equal(t, Entered, e.Type([]byte("\r")))
	}
}

// TestSuspend: the text is still there after Ctrl-Z, and what was typed behind that waits.
func TestSuspend(t *testing.T) {
	e := &Editor{}
	require.Equal(t, Suspended, typed(e, "ab\x1acd"))
	e.Draw(80, 24, Styles{})
	e.Resume()
	require.Equal(t, Typing, e.Type(nil))
	require.Contains(t, e.Draw(80, 24, Styles{}), "> abcd")
}

func TestComplete(t *testing.T) {
	e := &Editor{Complete: func(line string) (all []string) {
		for _, c := range []string{"/reset", "/regen", "/save "} {
			if strings.HasPrefix(c, line) {
				all = append(all, c)
			}
		}
		return all
	}}
	for keys, want := range map[string]string{"/\t": "/", "/r\t": "/re", "/s\t": "/save ", "x\t": "x", "/reg\t": "/regen"} {
		typed(e, keys)
		require.Equal(t, want, e.Text(), "%q", keys)
	}
	typed(e, "/re\t")
	require.Contains(t, e.Draw(80, 24, Styles{}), "/reset  /regen")
	e.Type([]byte("s"))
	require.NotContains(t, e.Draw(80, 24, Styles{}), "/regen", "a hint goes with the next key")
}

// screen is a terminal that knows what the editor uses.
type screen struct {
	rows     [][]rune
	row, col int
	width    int
}

func newScreen(width, height int) *screen {
	s := &screen{width: width}
	for range height {
		s.rows = append(s.rows, []rune(strings.Repeat(" ", width)))
	}
	return s
}

func (s *screen) write(t require.TestingT, text string) {
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			at := strings.IndexFunc(rest, func(r rune) bool { return r >= '@' })
			n, _ := strconv.Atoi(rest[:at])
			switch rest[at] {
			case 'A':
				require.LessOrEqual(t, n, s.row, "above the screen")
				s.row -= n
			case 'C':
				s.col += n
				require.Less(t, s.col, s.width)
			case 'J':
				for c := s.col; c < s.width; c++ {
					s.rows[s.row][c] = ' '
				}
				for r := s.row + 1; r < len(s.rows); r++ {
					s.rows[r] = []rune(strings.Repeat(" ", s.width))
				}
			case 'm':
			default:
				require.Fail(t, "unknown sequence", "%q", text)
			}
			text = rest[at+1:]
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
			s.col = 0
		case '\n':
			if s.row++; s.row == len(s.rows) {
				s.rows, s.row = append(s.rows[1:], []rune(strings.Repeat(" ", s.width))), s.row-1
			}
		default:
			w := columns(r)
			require.LessOrEqual(t, s.col+w, s.width-1, "the last column")
			for range w {
				s.rows[s.row][s.col] = r
				s.col++
			}
		}
	}
}

func (s *screen) text() string {
	var lines []string
	for _, row := range s.rows {
		lines = append(lines, strings.TrimRight(string(row), " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// What a screen shows after any keys is what it would show if the text were drawn for the first time, and nothing is
// left of what was there before. Text above stays.
func TestDraw(t *testing.T) {
	keys := rapid.SampledFrom([]string{
		"a", "word ", "日本", "\x1b[D", "\x1b[C", "\x7f", "\x01", "\x05", "\x17", "\x1b[200~x\ny\n\x1b[201~", "\x1b[A", "\x1b[B", "\x15",
		"long long long long words", "\t", "\x12",
	})
	rapid.Check(t, func(t *rapid.T) {
		width, height := rapid.IntRange(8, 60).Draw(t, "width"), rapid.IntRange(3, 12).Draw(t, "height")
		s := newScreen(width, 40)
		s.write(t, "above\r\n")
		e := &Editor{Complete: func(string) []string { return []string{"/a", "/b"} }}
		e.Remember("of old")
		e.Begin("› ", "… ")
		s.write(t, e.Draw(width, height, Styles{"\x1b[1m", "\x1b[2m", "\x1b[22m"}))
		for range rapid.IntRange(1, 20).Draw(t, "keys") {
			e.Type([]byte(keys.Draw(t, "key")))
			s.write(t, e.Draw(width, height, Styles{"\x1b[1m", "\x1b[2m", "\x1b[22m"}))
			fresh := newScreen(width, 40)
			again := *e
			again.shown = picture{}
			fresh.write(t, "above\r\n"+again.Draw(width, height, Styles{}))
			require.Equal(t, fresh.text(), s.text())
			require.Equal(t, []int{fresh.row, fresh.col}, []int{s.row, s.col})
		}
	})
}

// A text of the history that was edited is not what a search finds: that comes as it was.
func TestSearchOfAnEditedText(t *testing.T) {
	e := &Editor{}
	e.Remember("of old")
	e.Begin("› ", "… ")
	typed(e, "\x1b[A\x17\x12l")
	require.Equal(t, "of old", string(e.text))
	require.Equal(t, 4, e.at)
}

// The cursor stands where the next character appears.
func TestCursor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(8, 40).Draw(t, "width")
		e := &Editor{}
		typed(e, rapid.StringMatching(`[a-z日 ]{0,60}`).Draw(t, "text")+strings.Repeat("\x1b[D", rapid.IntRange(0, 20).Draw(t, "left")))
		s := newScreen(width, 40)
		s.write(t, e.Draw(width, 40, Styles{}))
		if e.at < len(e.text) {
			row, col := s.row, s.col
			if s.rows[row][col] == ' ' && e.text[e.at] != ' ' { // behind a full row: it is the first of the next
				row, col = row+1, 0
			}
			require.Equal(t, string(e.text[e.at]), string(s.rows[row][col]), s.text())
		}
	})
}

// A window that becomes narrower breaks the rows that are there: all of them are replaced.
func TestResize(t *testing.T) {
	for narrow := 8; narrow < 40; narrow++ {
		e := &Editor{}
		typed(e, "\x1b[200~"+strings.Repeat("word,", 12)+"\nsecond line of text\x1b[201~")
		wide := newScreen(40, 40)
		wide.write(t, "above\r\n"+e.Draw(40, 30, Styles{}))
		s := newScreen(narrow, 60) // the same text as a terminal breaks it
		for i, row := range strings.Split(wide.text(), "\n") {
			for len(row) > narrow {
				copy(s.rows[s.row], []rune(row[:narrow]))
				row, s.row = row[narrow:], s.row+1
			}
			copy(s.rows[s.row], []rune(row))
			s.col = len(row)
			if i < strings.Count(wide.text(), "\n") {
				s.row++
			}
		}
		s.write(t, e.Draw(narrow, 50, Styles{}))
		fresh := newScreen(narrow, 60)
		again := *e
		again.shown = picture{}
		fresh.write(t, "above\r\n"+again.Draw(narrow, 50, Styles{}))
		require.Equal(t, fresh.text(), s.text(), "%d columns", narrow)
	}
}

func TestCrop(t *testing.T) {
	e := &Editor{}
	text := ""
	for i := range 100 {
		text += fmt.Sprintf("line %d\n", i)
	}
	typed(e, "\x1b[200~"+text+"end\x1b[201~")
	s := newScreen(40, 12)
	s.write(t, e.Draw(40, 10, Styles{}))
	require.Contains(t, s.text(), "line 99\n. end")
	require.NotContains(t, s.text(), "line 80")
	e.Begin("> ", ". ")
	e.Type([]byte("\x1b[200~" + text + "\x1b[201~\x01"))
	s = newScreen(40, 200)
	s.write(t, e.Leave(40, 150, Styles{})+"below")
	require.True(t, strings.HasPrefix(s.text(), "> line 0\n. line 1\n"))
	require.True(t, strings.HasSuffix(s.text(), "\n. line 99\n.\nbelow"), "the cursor is below all of it")
}

func TestTextIsBounded(t *testing.T) {
	e := &Editor{}
	typed(e, "\x1b[200~"+strings.Repeat("x", mostText+10)+"\x1b[201~")
	require.Len(t, e.Text(), mostText)
}
