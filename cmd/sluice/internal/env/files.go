package env

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/sluice-ai/sluice/internal/safefile"
)

// The most bytes that are read of a named file: of a text, and of a description such as a schema.
const (
	MostText        = 64 << 20
	MostDescription = 16 << 20
)

// ReadFile reads a file that the command line names, or standard input if that is -. Its errors begin with the name, as
// all of ours do. It is called before a command takes Ctrl-C for itself: a pipe may keep it waiting.
func (e *Env) ReadFile(name string, most int64) ([]byte, error) {
	if name == "-" {
		return e.ReadInput(most)
	}
	f, err := e.OpenInput(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := safefile.ReadAll(f, most)
	if err != nil {
		return nil, OnFile(name, err)
	}
	return data, nil
}

// OpenInput opens what ReadFile reads, to be read piece by piece.
func (e *Env) OpenInput(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(e.Stdin), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, OnFile(name, err)
	}
	return f, nil
}

// ReadInput reads standard input to its end.
func (e *Env) ReadInput(most int64) ([]byte, error) {
	data, err := safefile.ReadAll(e.Stdin, most)
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return data, nil
}

// OnFile names the file in an error about it, or about the file that was to replace it.
func OnFile(path string, err error) error {
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

// ForceFlag lets a command replace a file.
type ForceFlag struct {
	Force bool `help:"Replace a file that is there already, without asking."`
}

// Create begins a command's output file before the command's work, so that an unusable name is found early, and Ctrl-C
// still ends the process while a person is asked. read are the files that the command reads.
func (e *Env) Create(path string, force bool, read ...string) (*safefile.File, error) {
	if err := NotOver(path, read...); err != nil {
		return nil, err
	}
	f, err := safefile.Create(path, 0o666, force)
	if errors.Is(err, safefile.ErrTaken) {
		if err := e.MayReplace(path); err != nil {
			return nil, err
		}
		f, err = safefile.Create(path, 0o666, true)
	}
	return f, Unfit(path, err)
}

// MayReplace asks the person at the terminal whether a file may be replaced. Where there is nobody, it may not.
func (e *Env) MayReplace(path string) error {
	if !e.IsTerminal(e.Stdin) || !e.IsTerminal(e.Stderr) {
		return Usagef("%s is there already: --force replaces it, or choose another name", path)
	}
	fmt.Fprintf(e.Stderr, "%s is there already. Replace it? [y/N] ", Printable(path))
	if !Yes(e.Stdin) {
		return fmt.Errorf("%s was not replaced", path)
	}
	return nil
}

// Yes reads the answer to a question, up to its line end.
func Yes(r io.Reader) bool {
	var line strings.Builder
	for b := make([]byte, 1); ; line.Write(b) {
		if n, err := r.Read(b); n == 0 || err != nil || b[0] == '\n' {
			break
		}
	}
	said := strings.ToLower(strings.TrimSpace(line.String()))
	return said == "y" || said == "yes"
}

// Finish completes a file if err is nil, and removes it otherwise.
func Finish(f *safefile.File, path string, err error) error {
	if err == nil {
		if err = f.Commit(); err != nil {
			err = OnFile(path, err)
		}
	}
	return errors.Join(err, f.Close())
}

// Unfit adds the path to the error of a file that cannot be made; nil stays nil.
func Unfit(path string, err error) error {
	var name safefile.Unfit
	switch {
	case errors.As(err, &name):
		return Usagef("%s %v", path, name)
	case err != nil:
		return OnFile(path, err)
	}
	return nil
}

// NotOver refuses an output path that is one of the files read. Empty paths are ignored.
func NotOver(out string, read ...string) error {
	to, err := os.Stat(out)
	if err != nil {
		return nil // most often there is nothing yet
	}
	for _, path := range read {
		if from, err := os.Stat(path); err == nil && os.SameFile(from, to) {
			return Usagef("%s is a file that is read: choose another name for the new one", out)
		}
	}
	return nil
}
