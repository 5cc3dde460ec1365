//go:build !unix

package env

import (
	"io"
	"os"
)

// hasText says whether a stream is a regular file. On this system a pipe cannot be asked whether data will come.
func hasText(stream io.Reader) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}
