package system

import (
	"errors"
	"os"
)

// ErrLocked says that another holder has locked a file.
var ErrLocked = errors.New("the file is locked by another")

// LinkNew is RenameNew of file systems that cannot rename without replacing.
func LinkNew(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}
