package ask

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/lineedit"
	"github.com/sluice-ai/sluice/internal/safefile"
)

// lineReader waits for a line and returns it without its newline; pasted text may have several lines. It returns io.EOF
// after the last line, errCleared if a person discarded the line, errLeft for a Ctrl-C on an empty line.
type lineReader func(ctx context.Context, prompt string) (string, error)

var (
	errCleared = errors.New("the line was cleared")
	errLeft    = errors.New("Ctrl-C on an empty line")
)

// lines reads lines without an editor.
func lines(r io.Reader) lineReader {
	buffer := bufio.NewReader(r)
	return abandonable(func() (string, error) {
		line, err := buffer.ReadString('\n')
		if err == io.EOF && line != "" {
			err = nil
		}
		return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), err
	})
}

// abandonable makes a reader return when its ctx ends. A line that arrives later is returned by the next call; a read
// that is still pending at the end is left to the end of the process.
func abandonable(read func() (string, error)) lineReader {
	type result struct {
		line string
		err  error
	}
	var pending chan result
	return func(ctx context.Context, _ string) (string, error) {
		if pending == nil {
			got := make(chan result, 1)
			pending = got
			go func() {
				line, err := read()
				got <- result{line, err}
			}()
		}
		select {
		case r := <-pending:
			pending = nil
			return r.line, r.err
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// plain reads lines from a terminal without escape sequences, or of a person who wants none: the terminal itself echoes
// and edits the line.
func plain(e *env.Env) lineReader {
	read := lines(e.Stdin)
	return func(ctx context.Context, prompt string) (string, error) {
		fmt.Fprint(e.Stdout, prompt)
		heard, done := e.Interruptible(ctx)
		defer done()
		line, err := read(heard, prompt)
		if heard.Err() != nil && ctx.Err() == nil {
			fmt.Fprintln(e.Stdout)
			return "", errLeft // only the terminal knows whether something was typed
		}
		return line, err
	}
}

// editor reads lines from a terminal, which it controls from newEditor to close: keys typed during an answer are not
// echoed, and go to the next line.
type editor struct {
	lineedit.Editor
	screen  env.Pane
	size    func() (width, height int)
	keys    <-chan []byte // what is typed; closed at its end
	resized <-chan os.Signal
	mode    terminalMode
	history *os.File // nil: no history is kept
}

// terminalMode switches a terminal between typing, where each key is read at once, and listening to an answer, where
// Ctrl-C is a signal.
type terminalMode interface {
	typing()
	listening()
	restore()
	suspend() // restores it, and stops the process until its shell has it go on
}

// typedBytes reads keys in a goroutine, until the process ends.
func typedBytes(r io.Reader) <-chan []byte {
	keys := make(chan []byte)
	go func() {
		defer close(keys)
		for {
			buffer := make([]byte, 4096)
			n, err := r.Read(buffer)
			if n > 0 {
				keys <- buffer[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	return keys
}

// read shows what is typed in bold, so that it stands out from the answers.
func (ed *editor) read(ctx context.Context, prompt string) (string, error) {
	ed.mode.typing()
	defer ed.mode.listening()
	fmt.Fprint(ed.screen.W, lineedit.PasteOn)
	defer fmt.Fprint(ed.screen.W, lineedit.PasteOff)
	ed.Begin(prompt, promptMore)
	outcome, err := ed.typed(ctx)
	width, height := ed.size()
	fmt.Fprint(ed.screen.W, ed.Leave(width, height, styles()))
	text := ed.Text()
	switch {
	case err != nil:
		return "", err
	case outcome == lineedit.Interrupted && ed.Touched():
		return "", errCleared
	case outcome == lineedit.Interrupted:
		return "", errLeft
	case outcome == lineedit.Ended:
		return "", io.EOF
	}
	return text, nil
}

// keep adds a message to the history.
func (ed *editor) keep(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	ed.Remember(text)
	if ed.history != nil {
		fmt.Fprintln(ed.history, strings.ReplaceAll(text, "\n", lineWithin)) // one that cannot be written is no reason to stop
	}
}

func styles() lineedit.Styles {
	return lineedit.Styles{Bold: env.Bold, Dim: env.Dim, Normal: env.Normal}
}

// typed reads keys until a text is complete, and shows the text meanwhile.
func (ed *editor) typed(ctx context.Context) (lineedit.Outcome, error) {
	outcome := ed.Type(nil)
	for outcome == lineedit.Typing || outcome == lineedit.Suspended {
		if outcome == lineedit.Suspended {
			ed.leave()
			outcome = ed.Type(nil)
			continue
		}
		width, height := ed.size()
		fmt.Fprint(ed.screen.W, ed.Draw(width, height, styles()))
		select {
		case keys, ok := <-ed.keys:
			if !ok {
				return lineedit.Ended, nil
			}
			outcome = ed.Type(keys)
		case <-ed.resized:
		case <-ctx.Done():
			return outcome, ctx.Err()
		}
	}
	return outcome, nil
}

// leave gives the terminal to another program, and takes it back when this one goes on.
func (ed *editor) leave() {
	fmt.Fprint(ed.screen.W, "\r\n"+lineedit.PasteOff)
	ed.mode.suspend()
	ed.mode.typing()
	fmt.Fprint(ed.screen.W, lineedit.PasteOn)
	ed.Resume()
}

// close restores the terminal.
func (ed *editor) close() {
	ed.mode.restore()
	if ed.history != nil {
		ed.history.Close()
	}
}

// historyPath is the path of the file with lines of earlier sessions.
func historyPath() (string, error) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "sluice", "history"), err
}

const (
	mostHistory = 1000   // texts of earlier sessions
	lineWithin  = "\x00" // stands for a newline in the file, where each text has a line
)

// remember reads the history from a file, and appends later lines to it. Only its owner may read the file.
func (ed *editor) remember(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	earlier, err := recent(path, mostHistory)
	if err != nil {
		return err
	}
	for _, line := range earlier {
		ed.Remember(strings.ReplaceAll(line, lineWithin, "\n"))
	}
	ed.history, err = safefile.Append(path)
	return err
}

// recent reads the last lines of a history. If there are more than twice as many, the file is shortened to them.
func recent(path string, most int) ([]string, error) {
	f, _, err := safefile.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := safefile.ReadAll(f, env.MostDescription)
	if err != nil {
		return nil, err
	}
	all := strings.Split(strings.TrimSuffix(string(bytes.ToValidUTF8(data, nil)), "\n"), "\n")
	if len(all) <= most {
		return all, nil
	}
	last := all[len(all)-most:]
	if len(all) > 2*most {
		err = safefile.Write(path, []byte(strings.Join(last, "\n")+"\n"), 0o600, true)
	}
	return last, err
}
