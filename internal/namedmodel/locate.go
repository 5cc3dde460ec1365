package namedmodel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/internal/system"
	"github.com/sluice-ai/sluice/stages/model/modelfile"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/others"
	"github.com/sluice-ai/sluice/storage/store"
)

// Lookup finds a variable of the environment, as os.LookupEnv does.
type Lookup = func(name string) (value string, ok bool)

// Locate finds the model that -m names: a path, if it exists or looks like one, else the name of a model in the store,
// or of one that another program keeps.
// An empty value stays empty: the embedded model.
func Locate(lookup Lookup, value string) (path string, err error) {
	path, _, err = find(lookup, value)
	return path, err
}

// find is Locate; it also returns the model's settings, if there are some beside it.
func find(lookup Lookup, value string) (path string, manner *modelfile.Manner, err error) {
	at, err := locate(lookup, value)
	if err != nil || at.texts == nil {
		return at.path, nil, err
	}
	manner, err = mannerOf(value, at.texts)
	return at.path, manner, err
}

// located is what a value of -m means.
type located struct {
	path  string
	since time.Time                          // when it was pulled or made, if it is in the store
	texts func(store.Role) ([]string, error) // what lies beside its weights; nil: nothing does
	files func(store.Role) ([]string, error) // paths of what does
}

// locate is Locate; it also finds what lies beside the model.
func locate(lookup Lookup, value string) (located, error) {
	if value == "" || LooksLikePath(value) {
		return located{path: value}, nil
	}
	if _, err := os.Stat(value); err == nil {
		return located{path: value}, nil
	}
	if others.IsName(value) {
		m, err := others.Find(OtherPlaces(lookup), value)
		if err != nil {
			return located{}, err
		}
		return located{path: m.Path, texts: m.Texts, files: m.Files}, nil
	}
	name, err := store.ParseName(value)
	if err != nil {
		return located{}, fmt.Errorf("%s: there is no such file, and %w", value, err)
	}
	s, err := OpenStore(lookup)
	if err != nil {
		return located{}, err
	}
	m, err := s.Find(name)
	if absent := (*store.Absent)(nil); errors.As(err, &absent) {
		return located{}, fmt.Errorf("%s: there is no such file, and %w", value, err)
	}
	if err != nil {
		return located{}, err
	}
	path, err := s.Path(m)
	if err != nil {
		return located{}, err
	}
	texts := func(role store.Role) ([]string, error) { return s.Texts(&m.Manifest, role) }
	files := func(role store.Role) ([]string, error) { return s.Paths(&m.Manifest, role) }
	return located{path, m.Pulled, texts, files}, nil
}

// AdaptersOf returns the paths of the adapters that change a model which -m could name, as its Modelfile has them.
func AdaptersOf(lookup Lookup, value string) ([]string, error) {
	at, err := locate(lookup, value)
	if err != nil || at.files == nil {
		return nil, err
	}
	return at.files(store.Adapter)
}

// State tells files, or folders, of a model from what they were before.
type State struct {
	Path     string
	Modified time.Time // when the model was pulled or made, if it is in the store
	Size     int64
}

// StateOf returns the state of a model that -m could name: the zero value, if it is not there.
func StateOf(lookup Lookup, value string) (s State) {
	found, err := locate(lookup, value)
	if err != nil {
		return s
	}
	at := found.path
	if config := checkpoint.Config(at); config != "" {
		at = config
	}
	if info, err := os.Stat(at); err == nil {
		s = State{found.path, info.ModTime(), info.Size()}
	}
	if !found.since.IsZero() {
		s.Modified = found.since
	}
	return s
}

// nameOnly matches names that no question looks like: OWNER/NAME, NAME:TAG, or a name with its version, such as
// llama3.2.
var nameOnly = regexp.MustCompile(`^[A-Za-z][\w.-]*(/[\w.-]+){0,2}:[\w.-]+$|^[A-Za-z][\w.-]*(/[\w.-]+){1,2}$|^[a-z]+-?\d+(\.\d+)?(-[\w.-]+)?$`)

// Known says whether a word names an existing file or a model of the store; named, whether it can hardly be anything
// but such a name.
func Known(lookup Lookup, word string) (known, named bool) {
	file := strings.HasSuffix(strings.ToLower(word), ".gguf")
	named = file || nameOnly.MatchString(word) || others.IsName(word)
	switch _, err := os.Stat(word); {
	case err == nil:
		return file || checkpoint.Has(word), named
	case LooksLikePath(word):
		return false, named
	}
	_, err := Locate(lookup, word)
	return err == nil, named
}

// LooksLikePath says whether a value, which may not exist, was meant as a path. Names of models begin with a letter or
// digit, and have .gguf only after a colon.
func LooksLikePath(value string) bool {
	return strings.HasSuffix(strings.ToLower(value), ".gguf") && !strings.Contains(value, ":") ||
		strings.HasPrefix(value, ".") || strings.HasPrefix(value, "~") || filepath.IsAbs(value)
}

// store opens the store of this person's models.
func OpenStore(lookup Lookup) (*store.Store, error) {
	dir, err := storeDir(lookup)
	if err != nil {
		return nil, err
	}
	return store.Open(dir)
}

// StoreVariable names the folder of the store.
const StoreVariable = "SLUICE_STORE"

// storeDir is the folder of the store: SLUICE_STORE, else in the folder of this person's data.
func storeDir(lookup Lookup) (string, error) {
	if dir, _ := lookup(StoreVariable); dir != "" {
		return dir, nil
	}
	data := system.DataFolder(lookup)
	if data == "" {
		return "", errors.New("there is no home folder for the store of models: name a folder by SLUICE_STORE")
	}
	return filepath.Join(data, "sluice", "store"), nil
}
