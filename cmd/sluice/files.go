package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/sluice-ai/sluice/internal/safefile"
)

// The most that is read of what a command line names: a text, and what describes something.
const (
	mostText        = 64 << 20
	mostDescription = 16 << 20
)

// readFile reads a file that the command line names, or standard input if that is -. Its errors begin with the name, as
// all of ours do. It is called before a command takes Ctrl-C for itself: a pipe may keep it waiting.
func (e *env) readFile(name string, most int64) ([]byte, error) {
	if name == "-" {
		return e.readInput(most)
	}
	f, err := e.openInput(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := safefile.ReadAll(f, most)
	if err != nil {
		return nil, onFile(name, err)
	}
	return data, nil
}

// openInput opens what readFile reads, for who reads it piece by piece.
func (e *env) openInput(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(e.stdin), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, onFile(name, err)
	}
	return f, nil
}

// readInput reads standard input to its end.
func (e *env) readInput(most int64) ([]byte, error) {
	data, err := safefile.ReadAll(e.stdin, most)
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return data, nil
}

// onFile says of the file that a person named what went wrong with it, or with the one that was to take its place.
func onFile(path string, err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		err = p.Err
	case errors.As(err, &l):
		err = l.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// forceFlag lets a command replace a file.
type forceFlag struct {
	Force bool `help:"Replace a file that is there already, without asking."`
}

// create begins the file that a command makes, before its work: a name that is no good is known then, and Ctrl-C still
// ends the process while somebody is asked. The files of read are those that the command reads.
func (e *env) create(path string, force bool, read ...string) (*safefile.File, error) {
	if err := notOver(path, read...); err != nil {
		return nil, err
	}
	f, err := safefile.Create(path, 0o666, force)
	if errors.Is(err, safefile.ErrTaken) {
		if err := e.mayReplace(path); err != nil {
			return nil, err
		}
		f, err = safefile.Create(path, 0o666, true)
	}
	return f, unfit(path, err)
}

// mayReplace asks the person at the terminal whether a file may be replaced. Where there is nobody, it may not.
func (e *env) mayReplace(path string) error {
	if !e.isTerminal(e.stdin) || !e.isTerminal(e.stderr) {
		return usagef("%s is there already: --force replaces it, or choose another name", path)
	}
	fmt.Fprintf(e.stderr, "%s is there already. Replace it? [y/N] ", printable(path))
	if !yes(e.stdin) {
		return fmt.Errorf("%s was not replaced", path)
	}
	return nil
}

// yes reads the answer to a question, and nothing behind it.
func yes(r io.Reader) bool {
	var line strings.Builder
	for b := make([]byte, 1); ; line.Write(b) {
		if n, err := r.Read(b); n == 0 || err != nil || b[0] == '\n' {
			break
		}
	}
	said := strings.ToLower(strings.TrimSpace(line.String()))
	return said == "y" || said == "yes"
}

// finish completes a file that was written without an error, or leaves nothing of it.
func finish(f *safefile.File, path string, err error) error {
	if err == nil {
		if err = f.Commit(); err != nil {
			err = onFile(path, err)
		}
	}
	return errors.Join(err, f.Close())
}

// unfit names the file that cannot be made, or nil.
func unfit(path string, err error) error {
	var name safefile.Unfit
	switch {
	case errors.As(err, &name):
		return usagef("%s %v", path, name)
	case err != nil:
		return onFile(path, err)
	}
	return nil
}

// notOver refuses to write to a file that is read. Empty paths name none.
func notOver(out string, read ...string) error {
	to, err := os.Stat(out)
	if err != nil {
		return nil // most often there is nothing yet
	}
	for _, path := range read {
		if from, err := os.Stat(path); err == nil && os.SameFile(from, to) {
			return usagef("%s is a file that is read: choose another name for the new one", out)
		}
	}
	return nil
}
