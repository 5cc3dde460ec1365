package sessionfiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/storage/owned"
	"github.com/sluice-ai/sluice/storage/sealed"
)

// Folder is a folder of session files. Its methods may be called from any goroutine.
type Folder struct {
	path string
	most int64
	key  *sealed.Key // nil: files are not encrypted

	mu    sync.Mutex
	files map[string]file // by path below the folder
	used  int64
}

// file is a session file.
type file struct {
	owner string // digest
	bytes int64
	time  time.Time
}

// Errors of a folder.
var (
	ErrFull    = errors.New("the saved sessions take all the room that they may: erase one that you do not need")
	ErrMissing = errors.New("there is no such session")
)

const (
	private     = 0o700
	privateFile = 0o600
)

// OpenFolder opens a folder whose files may take so many bytes, and makes it if there is none.
func OpenFolder(path string, most int64) (*Folder, error) {
	if err := os.MkdirAll(path, private); err != nil {
		return nil, err
	}
	f := &Folder{path: path, most: most, files: map[string]file{}}
	err := owned.Files(path, func(owner string, info fs.FileInfo) {
		if filepath.Ext(info.Name()) == "" {
			f.files[owner+"/"+info.Name()] = file{owner, info.Size(), info.ModTime()}
			f.used += info.Size()
		}
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Encrypt has sessions read by a key, if there is one. It is called before there are any.
func (f *Folder) Encrypt(key *sealed.Key) { f.key = key }

// Path is where the folder is.
func (f *Folder) Path() string { return f.path }

// Used is how many bytes its files have.
func (f *Folder) Used() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used
}

// keyOf is the path of a session below the folder. Who has another key has another folder there.
func keyOf(owner, name string) string {
	return owned.Names{Of: "sessions", By: "name"}.Key(owner, name)
}

func (f *Folder) at(key string) string { return filepath.Join(f.path, filepath.FromSlash(key)) }

// Draft is a session file that is being written.
type Draft struct {
	*safefile.File
	folder *Folder
	key    string
	bytes  int64
	whole  bool
}

// Create begins the session of an owner and a name, of so many bytes, which replaces an older one when it is whole.
// Where there is no room, the oldest of the owner with most bytes go, unless that is this one: then the error is
// ErrFull.
func (f *Folder) Create(owner, name string, bytes int64) (*Draft, error) {
	key := keyOf(owner, name)
	if err := f.reserve(key, bytes); err != nil {
		return nil, err
	}
	d := &Draft{folder: f, key: key, bytes: bytes}
	err := os.MkdirAll(filepath.Dir(f.at(key)), private)
	if err == nil {
		d.File, err = safefile.Create(f.at(key), privateFile, true)
	}
	if err != nil {
		f.giveBack(bytes)
		return nil, err
	}
	return d, nil
}

func (f *Folder) giveBack(bytes int64) {
	f.mu.Lock()
	f.used -= bytes
	f.mu.Unlock()
}

// Commit gives the file its name.
func (d *Draft) Commit(now time.Time) error {
	if err := d.File.Commit(); err != nil {
		return err
	}
	f := d.folder
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used -= f.files[d.key].bytes
	f.files[d.key] = file{owned.OwnerOf(d.key), d.bytes, now}
	d.whole = true
	return nil
}

// Close closes the file, and discards it if it was not committed.
func (d *Draft) Close() error {
	if !d.whole {
		d.folder.giveBack(d.bytes)
	}
	return d.File.Close()
}

// reserve takes room for a file that is to be written at key. The older one there stays until then.
func (f *Folder) reserve(key string, bytes int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.used+bytes > f.most {
		taken := map[string]int64{owned.OwnerOf(key): bytes}
		for _, x := range f.files {
			taken[x.owner] += x.bytes
		}
		oldest := ""
		for k, x := range f.files {
			if taken[x.owner] > taken[owned.OwnerOf(key)] && (oldest == "" || taken[x.owner] > taken[f.files[oldest].owner] ||
				x.owner == f.files[oldest].owner && x.time.Before(f.files[oldest].time)) {
				oldest = k
			}
		}
		if oldest == "" {
			return fmt.Errorf("%d bytes of %d are used, %d more are wanted: %w", f.used, f.most, bytes, ErrFull)
		}
		f.remove(oldest)
	}
	f.used += bytes
	return nil
}

// remove removes a file. The caller holds the mutex.
func (f *Folder) remove(key string) {
	f.used -= f.files[key].bytes
	delete(f.files, key)
	_ = os.Remove(f.at(key))               // it may be gone
	_ = os.Remove(filepath.Dir(f.at(key))) // it is empty, or stays
}

// Open opens the session of an owner and a name, to be closed by the caller. The error wraps ErrMissing or ErrBroken,
// or says why the file cannot be read.
func (f *Folder) Open(owner, name string) (*File, io.Closer, error) {
	from, info, err := safefile.Open(f.at(keyOf(owner, name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, ErrMissing
	}
	if err != nil {
		return nil, nil, err
	}
	x, err := Read(from, info.Size(), f.key)
	if err == nil && (x.Owner != owner || x.Name != name) {
		err = fmt.Errorf("it is of another client, or has another name: %w", ErrBroken)
	}
	if err != nil {
		return nil, nil, errors.Join(err, from.Close())
	}
	return x, from, nil
}

// Remove deletes the session of an owner and a name, and says whether there was one.
func (f *Folder) Remove(owner, name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := keyOf(owner, name)
	_, there := f.files[key]
	if there {
		f.remove(key)
	}
	return there
}
