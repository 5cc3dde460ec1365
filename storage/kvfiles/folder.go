package kvfiles

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/storage/sealed"
)

// Folder is a folder of blocks, of any number of models. Its methods may be called from any goroutine.
type Folder struct {
	path string
	most int64
	key  *sealed.Key // nil: files are not encrypted

	mu     sync.Mutex
	used   int64  // bytes of all files
	begun  int64  // of these, of files that are being written
	lost   bool   // a file was not found: used may count files that others have removed
	others []file // of no open shelf, oldest first: they go when room is wanted
	open   map[string]int
}

// file is a file of a block.
type file struct {
	shelf, name string
	bytes       int64
	used        time.Time
}

// ErrFull is wrapped where the folder has no room for another block.
var ErrFull = errors.New("the folder is as large as it may be")

const (
	private     = 0o700 // mode of folders
	privateFile = 0o600
	// beside begins the names of files that are being written.
	beside = "new-"
	// forgotten is the age at which such a file is of a process that has ended.
	forgotten = 10 * time.Minute
)

// Open opens a folder that may take so many bytes, and makes it if there is none. Files over the limit are
// removed, least recently used first.
func Open(path string, most int64, now time.Time) (*Folder, error) {
	if err := os.MkdirAll(path, private); err != nil {
		return nil, err
	}
	f := &Folder{path: path, most: most, open: map[string]int{}}
	shelves, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	for _, s := range shelves {
		if s.IsDir() && isShelf(s.Name()) {
			f.others = append(f.others, f.list(s.Name(), now)...)
		}
	}
	slices.SortFunc(f.others, older)
	for _, x := range f.others {
		f.used += x.bytes
	}
	f.shrink(0)
	return f, nil
}

// Encrypt has blocks written and read by a key, if there is one. It is called before there are shelves. Blocks of
// another key, or of none, are on other shelves.
func (f *Folder) Encrypt(key *sealed.Key) { f.key = key }

// Path is where the folder is.
func (f *Folder) Path() string { return f.path }

// Most is how many bytes its files may have.
func (f *Folder) Most() int64 { return f.most }

// Used is how many bytes its files have.
func (f *Folder) Used() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used
}

func older(a, b file) int { return cmp.Or(a.used.Compare(b.used), strings.Compare(a.name, b.name)) }

// isShelf says whether a folder's name is that of a shelf.
func isShelf(name string) bool { return len(name) == 32 && isHex(name) }

func isHex(name string) bool { return strings.Trim(name, "0123456789abcdef") == "" }

// isBlock says whether a file's name is that of a block.
func isBlock(name string) bool {
	key, class, found := strings.Cut(name, "-")
	return found && len(key) == 32 && isHex(key) && class != "" && strings.Trim(class, "0123456789") == ""
}

// list returns the files of a shelf. What a process left behind that ended while it wrote is removed.
func (f *Folder) list(shelf string, now time.Time) (all []file) {
	entries, _ := os.ReadDir(filepath.Join(f.path, shelf)) // what cannot be read is not there
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		switch {
		case isBlock(e.Name()):
			all = append(all, file{shelf, e.Name(), info.Size(), info.ModTime()})
		case strings.HasPrefix(e.Name(), beside) && now.Sub(info.ModTime()) > forgotten:
			_ = os.Remove(filepath.Join(f.path, shelf, e.Name())) // nobody waits for it
		}
	}
	return all
}

// shrink removes files of shelves that are not open until there is room for so many bytes more, and says whether there
// is. The caller holds the mutex, or is alone.
func (f *Folder) shrink(bytes int64) bool {
	for f.used+bytes > f.most && len(f.others) > 0 {
		x := f.others[0]
		f.others = f.others[1:]
		f.used -= x.bytes
		dir := filepath.Join(f.path, x.shelf)
		_ = os.Remove(filepath.Join(dir, x.name)) // it may be gone
		_ = os.Remove(dir)                        // it is empty, or stays
	}
	return f.used+bytes <= f.most
}

// reserve takes room for so many bytes of a file that is being written; see settle.
func (f *Folder) reserve(bytes int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost && f.used+bytes > f.most {
		f.count()
	}
	if !f.shrink(bytes) {
		return fmt.Errorf("%d bytes of %d are used: %w", f.used, f.most, ErrFull)
	}
	f.used += bytes
	f.begun += bytes
	return nil
}

// settle says that a file for which room was reserved is there, or failed. The caller may give the room back then.
func (f *Folder) settle(bytes int64) {
	f.mu.Lock()
	f.begun -= bytes
	f.mu.Unlock()
}

// count counts anew what the files of open shelves and those of others have. The caller holds the mutex.
func (f *Folder) count() {
	f.used, f.lost = f.begun, false
	for _, x := range f.others {
		f.used += x.bytes
	}
	for shelf := range f.open {
		for _, x := range f.list(shelf, time.Time{}) {
			f.used += x.bytes
		}
	}
}

// missed notes that a file is gone that may be counted.
func (f *Folder) missed() {
	f.mu.Lock()
	f.lost = true
	f.mu.Unlock()
}

func (f *Folder) giveBack(bytes int64) {
	f.mu.Lock()
	f.used -= bytes
	f.mu.Unlock()
}

// bare is an error without the file's name, which says nothing to a user.
func bare(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	if l := (*os.LinkError)(nil); errors.As(err, &l) {
		return l.Err
	}
	return err
}
