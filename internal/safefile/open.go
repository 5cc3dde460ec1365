// Package safefile opens and creates files under names that a person gave, or that somebody else may have prepared.
//
// A file to be read is opened without waiting, must be a regular file, and must not be longer than its reader has
// room for. A file to be written grows without a name, or under one that is known and locked, and gets its name when
// it is complete: a taken name is left alone unless the caller says otherwise, links in its place are not followed,
// and a killed process leaves nothing, or a file that the next one removes.
package safefile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/sluice-ai/sluice/internal/system"
)

// ErrKind says that a name belongs to no regular file.
var ErrKind = errors.New("want a regular file")

// Open opens a regular file for reading. FIFOs, devices and sockets are refused without waiting or reading. Errors do
// not name the file.
func Open(path string) (*os.File, fs.FileInfo, error) { return open(path, os.O_RDONLY, 0) }

func open(path string, flags int, perm fs.FileMode) (*os.File, fs.FileInfo, error) {
	f, err := system.OpenFile(path, flags|system.NoWait, perm)
	if err != nil {
		return nil, nil, cmp.Or(socket(path), bare(err))
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("is %s, %w", kind(info.Mode()), ErrKind)
	}
	if err != nil {
		f.Close()
		return nil, nil, bare(err)
	}
	return f, info, nil
}

// socket returns the error of a path that cannot be opened, if it is that of a socket.
func socket(path string) error {
	if info, err := os.Stat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
		return fmt.Errorf("is %s, %w", kind(info.Mode()), ErrKind)
	}
	return nil
}

// ReadAll reads all of r, which may be endless. More than most bytes are an error.
func ReadAll(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, bare(err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("has more than %d bytes, which is the most that is read here", most)
	}
	return data, nil
}

// Append opens or creates a regular file, readable by its owner, for writing at its end.
func Append(path string) (*os.File, error) {
	f, _, err := open(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|system.NoFollow, 0o600)
	return f, err
}

// Grow opens or creates a file that several runs write to, one after the other. It stays locked until it is closed;
// while another run holds it, the error is ErrBusy.
func Grow(path string) (*os.File, error) {
	f, info, err := open(path, os.O_RDWR|os.O_CREATE|system.NoFollow, 0o666)
	if err != nil {
		return nil, err
	}
	if n := system.Links(info); n > 1 {
		err = fmt.Errorf("has %d names, so it may be somebody else's: move it away", n)
	} else {
		err = lock(f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeSymlink != 0:
		return "a link"
	}
	return "a device"
}

// bare returns an error without the file's name, which callers add.
func bare(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	var s *os.SyscallError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	case errors.As(err, &s):
		return s.Err
	}
	return err
}
