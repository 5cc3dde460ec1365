//go:build !linux

package safefile

import (
	"errors"
	"io/fs"
	"os"
)

func unnamed(string, fs.FileMode) (*os.File, error) { return nil, errors.ErrUnsupported }

func self(*os.File) string { return "" }

func link(*os.File, string) error { return errors.ErrUnsupported }

func renameNew(from, to string) error { return linkNew(from, to) }
