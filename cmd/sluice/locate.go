package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-ai/sluice/stages/modelfile"
	"github.com/sluice-ai/sluice/storage/store"
)

// locate finds what a person means by -m: a path, if something is there or it looks like one, else the name of a model
// in the store. Empty is the embedded model, and stays so.
func locate(e *env, value string) (path string, err error) {
	path, _, err = find(e, value)
	return path, err
}

// find is locate, and says how the model runs, if the store knows.
func find(e *env, value string) (path string, manner *modelfile.Manner, err error) {
	if value == "" || looksLikePath(value) {
		return value, nil, nil
	}
	if _, err := os.Stat(value); err == nil {
		return value, nil, nil
	}
	name, err := store.ParseName(value)
	if err != nil {
		return "", nil, fmt.Errorf("%s: there is no such file, and %w", value, err)
	}
	s, err := openStore(e)
	if err != nil {
		return "", nil, err
	}
	m, err := s.Find(name)
	if absent := (*store.Absent)(nil); errors.As(err, &absent) {
		return "", nil, fmt.Errorf("%s: there is no such file, and %w", value, err)
	}
	if err != nil {
		return "", nil, err
	}
	if path, err = s.Path(m); err != nil {
		return "", nil, err
	}
	manner, err = mannerOf(s, &m.Manifest)
	return path, manner, err
}

// looksLikePath says of what may not be there whether a file was meant. Names of models begin with a letter or digit,
// and hold .gguf behind a colon at most.
func looksLikePath(value string) bool {
	return strings.HasSuffix(strings.ToLower(value), ".gguf") && !strings.Contains(value, ":") ||
		strings.HasPrefix(value, ".") || strings.HasPrefix(value, "~") || filepath.IsAbs(value)
}

// store opens the store of this person's models.
func openStore(e *env) (*store.Store, error) {
	dir, err := storeDir(e)
	if err != nil {
		return nil, err
	}
	return store.Open(dir)
}

// storeVariable names the folder of the store.
const storeVariable = "SLUICE_STORE"

// storeDir is where the store lies: SLUICE_STORE, else in the XDG data folder.
func storeDir(e *env) (string, error) {
	if dir, _ := e.lookup(storeVariable); dir != "" {
		return dir, nil
	}
	data, _ := e.lookup("XDG_DATA_HOME")
	if !filepath.IsAbs(data) { // the XDG specification says so
		home, _ := e.lookup("HOME")
		if home == "" {
			return "", usagef("there is no home folder for the store of models: name a folder by SLUICE_STORE")
		}
		data = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(data, "sluice", "store"), nil
}
