package safefile

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ReadSummed reads the data of a file that WriteSummed wrote. A file that is missing or damaged has none: nil.
func ReadSummed(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	n := len(data) - sha256.Size
	if n < 0 || sha256.Sum256(data[:n]) != [sha256.Size]byte(data[n:]) {
		return nil, nil
	}
	return data[:n:n], nil
}

// WriteSummed writes data, with their SHA-256 behind them, to a file that is a cache: anybody may read it, and it
// replaces what was there, unless it is the same. The folder is made if it is missing.
func WriteSummed(path string, data []byte) error {
	sum := sha256.Sum256(data)
	all := append(data[:len(data):len(data)], sum[:]...)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, all) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := Write(path, all, 0o644, true); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
