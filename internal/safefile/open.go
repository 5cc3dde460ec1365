// Package safefile opens and creates files by names that a person gave, or that somebody else may have prepared.
//
// What is read is opened without waiting, is a regular file, and is not longer than its reader has room for. What is
// written grows without a name, or under one that is known and locked, and takes its place when it is complete: a name
// that is taken stays whose it is unless the caller says otherwise, links in its place are not followed, and a process
// that is killed leaves nothing, or what the next one removes.
package safefile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrKind says that what has a name is no file that can be read.
var ErrKind = errors.New("want a regular file")

// Open opens a regular file to read. Of a FIFO it does not wait for the other end: that, devices and sockets are
// refused, and nothing is read from them. Errors do not name the file.
func Open(path string) (*os.File, fs.FileInfo, error) { return open(path, os.O_RDONLY, 0) }

func open(path string, flags int, perm fs.FileMode) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, flags|noWait, perm)
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

// socket says that a path, which cannot be opened, is that of a socket.
func socket(path string) error {
	if info, err := os.Stat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
		return fmt.Errorf("is %s, %w", kind(info.Mode()), ErrKind)
	}
	return nil
}

// ReadAll reads all of r, which may be endless, if that is no more than most bytes.
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

// Append opens a regular file of its owner's, or makes it, to write at its end.
func Append(path string) (*os.File, error) {
	f, _, err := open(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|noFollow, 0o600)
	return f, err
}

// Grow opens a file that several runs, one after the other, write to, or makes it. It is locked until it is closed.
func Grow(path string) (*os.File, error) {
	f, info, err := open(path, os.O_RDWR|os.O_CREATE|noFollow, 0o666)
	if err != nil {
		return nil, err
	}
	if n := names(info); n > 1 {
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

// bare is an error without the name of the file, which callers put in front.
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
