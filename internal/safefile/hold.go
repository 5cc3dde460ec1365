package safefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// ErrHeld says that another process holds a folder.
var ErrHeld = errors.New("another server uses this folder: end it, or choose another folder")

// heldBy is the file in a folder that is locked by who holds the folder. It is empty.
const heldBy = "lock"

// Hold makes a folder that its owner alone can read, if there is none, and holds it until the result is closed; while
// another process holds the folder, the error is ErrHeld.
func Hold(folder string) (io.Closer, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	lock, err := Grow(filepath.Join(folder, heldBy))
	if errors.Is(err, ErrBusy) {
		return nil, ErrHeld
	}
	if err != nil {
		return nil, err
	}
	_ = lock.Chmod(0o600)
	return lock, nil
}
