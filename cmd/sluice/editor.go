package main

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

	"github.com/peterh/liner"

	"github.com/sluice-ai/sluice/internal/safefile"
)

// lineReader waits for a line, without its newline. It returns io.EOF after the last one, and errCleared if a person
// threw the line away.
type lineReader func(ctx context.Context, prompt string) (string, error)

var errCleared = errors.New("the line was cleared")

// lines reads lines that no person types.
func lines(r io.Reader) lineReader {
	buffer := bufio.NewReader(r)
	return abandonable(func(string) (string, error) {
		line, err := buffer.ReadString('\n')
		if err == io.EOF && line != "" {
			err = nil
		}
		return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), err
	})
}

// abandonable makes a read end with ctx. The goroutine that still waits for a line then is left to the process's end.
func abandonable(read func(prompt string) (string, error)) lineReader {
	type result struct {
		line string
		err  error
	}
	return func(ctx context.Context, prompt string) (string, error) {
		got := make(chan result, 1)
		go func() {
			line, err := read(prompt)
			got <- result{line, err}
		}()
		select {
		case r := <-got:
			return r.line, r.err
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// editor reads lines from the terminal of the process, which it holds from newEditor to close: keys that are typed
// meanwhile are not echoed, and wait for the next line.
type editor struct {
	screen  pane
	liner   *liner.State
	history *os.File // nil: it is not kept
}

func newEditor(screen pane) *editor {
	ed := &editor{screen: screen, liner: liner.NewLiner()}
	ed.liner.SetCtrlCAborts(true)
	ed.liner.SetMultiLineMode(true)
	ed.liner.SetBeep(false)
	ed.liner.SetCompleter(completions)
	return ed
}

// read shows what is typed in bold, so that it stands out from the answers.
func (ed *editor) read(prompt string) (string, error) {
	if ed.screen.ansi {
		fmt.Fprint(ed.screen.w, bold)
		defer fmt.Fprint(ed.screen.w, normal)
	}
	line, err := ed.liner.Prompt(prompt)
	switch {
	case errors.Is(err, liner.ErrPromptAborted):
		return "", errCleared
	case errors.Is(err, io.EOF):
		fmt.Fprintln(ed.screen.w) // Ctrl-D leaves the cursor behind the prompt
	case err == nil && strings.TrimSpace(line) != "":
		ed.liner.AppendHistory(line)
		if ed.history != nil {
			fmt.Fprintln(ed.history, line) // a history that cannot be written is no reason to stop
		}
	}
	return line, err
}

// close gives the terminal back.
func (ed *editor) close() {
	ed.liner.Close()
	if ed.history != nil {
		ed.history.Close()
	}
}

// historyPath is where the lines of earlier sessions are.
func historyPath() (string, error) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "sluice", "history"), err
}

// remember takes the history up from a file, and adds lines to it from now on. Only its owner may read the file.
func (ed *editor) remember(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	earlier, err := recent(path, liner.HistoryLimit)
	if err != nil {
		return err
	}
	for _, line := range earlier {
		ed.liner.AppendHistory(line)
	}
	ed.history, err = safefile.Append(path)
	return err
}

// recent reads the last lines of a history; of one that has more than twice as many, it drops the others.
func recent(path string, most int) ([]string, error) {
	f, _, err := safefile.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := safefile.ReadAll(f, mostDescription)
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
