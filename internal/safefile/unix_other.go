//go:build !unix

package safefile

import (
	"errors"
	"io/fs"
	"os"
)

const noWait, noFollow = 0, 0

func lock(*os.File) error { return nil }

func names(fs.FileInfo) int { return 1 }

func descriptor(string) (int, bool) { return 0, false }

func duplicate(int, string) (*os.File, error) { return nil, errors.ErrUnsupported }
