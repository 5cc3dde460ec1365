package models

import (
	"os"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

// NamedFile is a value of -m where several models are run: FILE, or NAME=FILE.
type NamedFile struct{ Name, Path string }

// ParseNamed splits NAME=FILE. A value that is the name of an existing file is not split.
func ParseNamed(value string) (NamedFile, error) {
	name, path, found := strings.Cut(value, "=")
	if _, err := os.Stat(value); err == nil || !found {
		name, path = "", value
	}
	switch {
	case path == "":
		return NamedFile{}, env.Usagef("-m %q names no file: want FILE or NAME=FILE", value)
	case found && name == "" && path != value:
		return NamedFile{}, env.Usagef("-m %q has an empty name: want FILE or NAME=FILE", value)
	}
	return NamedFile{name, path}, nil
}
