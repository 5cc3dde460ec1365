package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// readFile reads a file that the command line names. Its errors begin with the name, as all of ours do.
func readFile(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, onFile(name, err)
	}
	return data, nil
}

// replaceFile writes a file that only its owner may read. Others see the old one or the whole new one.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".sluice-*")
	if err != nil {
		return onFile(path, err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error says more
		return onFile(path, err)
	}
	return nil
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

// mayWrite says before long work, and not after it, that its result could not be written to path. It makes a file
// there, and takes it away again.
func mayWrite(path string) error {
	if err := regular(path); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return onFile(path, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// regular refuses names of what is no file: a new one would take the place of a device.
func regular(path string) error {
	switch info, err := os.Stat(path); {
	case err != nil: // most often there is nothing yet
		return nil
	case info.IsDir():
		return usagef("%s is a folder: name a file in it", path)
	case !info.Mode().IsRegular():
		return usagef("%s is not a regular file: choose another name", path)
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
