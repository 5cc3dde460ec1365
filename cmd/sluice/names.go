package main

import (
	"os"
	"strings"
)

// namedFile is a value of -m where several models are run: FILE, or NAME=FILE.
type namedFile struct{ name, path string }

// parseNamed takes NAME=FILE apart. A file whose own name holds a = is meant as it is, if it is there.
func parseNamed(value string) (namedFile, error) {
	name, path, found := strings.Cut(value, "=")
	if _, err := os.Stat(value); err == nil || !found {
		name, path = "", value
	}
	switch {
	case path == "":
		return namedFile{}, usagef("-m %q names no file: want FILE or NAME=FILE", value)
	case found && name == "" && path != value:
		return namedFile{}, usagef("-m %q has an empty name: want FILE or NAME=FILE", value)
	}
	return namedFile{name, path}, nil
}

// askable is the name of a model as a client can write it: JSON is UTF-8, and so are metrics, but names of files and
// texts of model files may be anything.
func askable(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }
