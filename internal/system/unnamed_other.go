//go:build !linux

package system

import (
	"errors"
	"io/fs"
	"os"
)

// Unnamed fails: on this system a file has a name as long as it exists.
func Unnamed(string, fs.FileMode) (*os.File, error) { return nil, errors.ErrUnsupported }

// Self returns no path: there are no files without names.
func Self(*os.File) string { return "" }

// LinkUnnamed fails: there are no files without names.
func LinkUnnamed(*os.File, string) error { return errors.ErrUnsupported }
