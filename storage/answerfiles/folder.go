package answerfiles

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/storage/owned"
	"github.com/sluice-ai/sluice/storage/sealed"
)

// State says how far an answer is. It is the end of its file's name.
type State string

const (
	Open  State = ".open"  // it goes on by itself when a server starts
	Left  State = ".left"  // its client has gone: it goes on when it comes back
	Done  State = ".done"  // it is whole
	Saved State = ".saved" // it is whole, and was asked to be stored
)

var states = []State{Open, Left, Done, Saved}

// ages are how long files stay that nobody writes to.
var ages = map[State]time.Duration{Open: 24 * time.Hour, Left: time.Hour, Done: time.Hour, Saved: 30 * 24 * time.Hour}

const (
	private     = 0o700
	privateFile = 0o600
)

// Folder is a folder of answers. Its methods may be called from any goroutine.
type Folder struct {
	path string
	most int64
	key  *sealed.Key // nil: files are not encrypted

	lock  io.Closer
	mu    sync.Mutex
	files map[string]*file // by path below the folder, without the state
	used  int64
}

// file is the file of one answer.
type file struct {
	owner string // a digest
	state State
	bytes int64
	time  time.Time
	busy  bool // it is written at the moment: it is not removed for room
}

// Errors of a folder.
var (
	ErrFull    = errors.New("the folder is as large as it may be")
	ErrMissing = errors.New("there is no such answer")
	ErrChanged = errors.New("it was gone on with since it was read")
)

// OpenFolder opens a folder that may take so many bytes, and makes it if there is none. What is too old, or too much,
// is removed.
func OpenFolder(path string, most int64, now time.Time) (*Folder, error) {
	lock, err := safefile.Hold(path)
	if err != nil {
		return nil, err
	}
	f := &Folder{path: path, most: most, files: map[string]*file{}, lock: lock}
	if err := owned.Files(path, f.found); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expire(now)
	f.shrink(0)
	return f, nil
}

// Encrypt has answers written and read by a key, if there is one. It is called before there are answers. Files of
// another key, or of none, are not used.
func (f *Folder) Encrypt(key *sealed.Key) { f.key = key }

// Close lets others use the folder.
func (f *Folder) Close() { _ = f.lock.Close() }

// Path is where the folder is.
func (f *Folder) Path() string { return f.path }

// Used is how many bytes its files have.
func (f *Folder) Used() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used
}

// found notes a file that was there before.
func (f *Folder) found(owner string, info fs.FileInfo) {
	state := State(filepath.Ext(info.Name()))
	key := owner + "/" + strings.TrimSuffix(info.Name(), string(state))
	if !slices.Contains(states, state) || f.files[key] != nil { // a killed process renamed none, so there is one
		return
	}
	f.files[key] = &file{owner, state, info.Size(), info.ModTime(), false}
	f.used += info.Size()
}

// keyOf is the path of an answer below the folder. Who has another key has another folder there.
func keyOf(owner, id string) string { return owned.Names{Of: "answers", By: "id"}.Key(owner, id) }

func (f *Folder) at(key string, s State) string {
	return filepath.Join(f.path, filepath.FromSlash(key)) + string(s)
}

// expire removes what is too old. The caller holds the mutex.
func (f *Folder) expire(now time.Time) {
	for key, x := range f.files {
		if !x.busy && now.Sub(x.time) > ages[x.state] {
			f.remove(key)
		}
	}
}

// shrink makes room for so many bytes, and says whether there is: of the owner with the most bytes, the oldest go
// first. The caller holds the mutex.
func (f *Folder) shrink(bytes int64) bool {
	busy := bytes
	for _, x := range f.files {
		if x.busy {
			busy += x.bytes
		}
	}
	if busy > f.most {
		return false
	}
	for f.used+bytes > f.most {
		taken, most := map[string]int64{}, int64(0)
		for _, x := range f.files {
			if !x.busy {
				taken[x.owner] += x.bytes
			}
		}
		for _, n := range taken {
			most = max(most, n)
		}
		oldest := ""
		for key, x := range f.files {
			if !x.busy && taken[x.owner] == most && (oldest == "" || x.time.Before(f.files[oldest].time)) {
				oldest = key
			}
		}
		if oldest == "" {
			return false
		}
		f.remove(oldest)
	}
	return true
}

// remove removes a file. The caller holds the mutex.
func (f *Folder) remove(key string) {
	x := f.files[key]
	delete(f.files, key)
	f.used -= x.bytes
	path := f.at(key, x.state)
	_ = os.Remove(path)               // it may be gone
	_ = os.Remove(filepath.Dir(path)) // it is empty, or stays
}

// File is an answer that is written by this process.
type File struct {
	folder *Folder
	key    string
}

// Create begins the file of an answer; a finished one of the same id goes for it.
func (f *Folder) Create(a *Asked, now time.Time) (*File, error) {
	key := keyOf(a.Owner, a.ID)
	data := appendHead(nil, f.key)
	data = appendSealed(data, appendRecord(nil, asked, appendAsked(nil, a)), f.key, key, len(data))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expire(now)
	if x := f.files[key]; x != nil {
		if x.busy {
			return nil, fmt.Errorf("an answer of the same id is being computed: %w", fs.ErrExist)
		}
		f.remove(key)
	}
	if !f.shrink(int64(len(data))) {
		return nil, fmt.Errorf("%d bytes of %d are used: %w", f.used, f.most, ErrFull)
	}
	path := f.at(key, Open)
	if err := os.MkdirAll(filepath.Dir(path), private); err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, data, privateFile); err != nil {
		_ = os.Remove(path) // nobody can read it
		return nil, err
	}
	owner, _, _ := strings.Cut(key, "/")
	f.files[key] = &file{owner, Open, int64(len(data)), now, true}
	f.used += int64(len(data))
	return &File{f, key}, nil
}

// Append adds records. After an error the file must not be written again.
func (x *File) Append(records []byte, now time.Time) error {
	f := x.folder
	f.mu.Lock()
	at := f.files[x.key]
	if at == nil {
		f.mu.Unlock()
		return ErrMissing
	}
	records = appendSealed(nil, records, f.key, x.key, int(at.bytes))
	if !f.shrink(int64(len(records))) {
		f.mu.Unlock()
		return fmt.Errorf("%d bytes of %d are used: %w", f.used, f.most, ErrFull)
	}
	path := f.at(x.key, at.state)
	f.used, at.bytes, at.time = f.used+int64(len(records)), at.bytes+int64(len(records)), now
	f.mu.Unlock()
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = out.Write(records)
	return errors.Join(err, out.Close())
}

// Close says how far the answer is now. This process writes to it no more.
func (x *File) Close(s State) error {
	f := x.folder
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.files[x.key]
	if at == nil {
		return nil // it was deleted
	}
	at.busy = false
	return f.become(x.key, s)
}

// become gives a file another state. The caller holds the mutex.
func (f *Folder) become(key string, s State) error {
	at := f.files[key]
	if at.state == s {
		return nil
	}
	if err := os.Rename(f.at(key, at.state), f.at(key, s)); err != nil {
		return err
	}
	at.state = s
	return nil
}

// Find reads an answer of an owner, whatever its state.
func (f *Folder) Find(owner, id string) (*Past, error) {
	key := keyOf(owner, id)
	data, err := f.data(key)
	if err != nil {
		return nil, err
	}
	p, err := parse(data, f.key, key)
	if err == nil && (p.ID != id || p.Owner != owner) {
		err = errors.New("it is of another request")
	}
	return p, err
}

// data is what an answer's file has. The mutex is held for as long as it is read: who goes on with the answer, or ends
// it, renames the file, after which it is not found under this name, and which Windows refuses while it is open.
func (f *Folder) data(key string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.files[key]; x != nil {
		return readFile(f.at(key, x.state))
	}
	return nil, ErrMissing
}

func readFile(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no file")
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// Has says whether there is an answer of an owner.
func (f *Folder) Has(owner, id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.files[keyOf(owner, id)] != nil
}

// Resume opens the file of an answer to go on with it: it is cut behind its last whole record.
func (f *Folder) Resume(p *Past) (*File, error) {
	key := keyOf(p.Owner, p.ID)
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.files[key]
	if x == nil {
		return nil, ErrMissing
	}
	if x.busy {
		return nil, fmt.Errorf("it is being computed: %w", fs.ErrExist)
	}
	if info, err := os.Lstat(f.at(key, x.state)); err != nil || info.Size() != p.size {
		return nil, cmp.Or(err, ErrChanged)
	}
	if err := f.become(key, Open); err != nil {
		return nil, err
	}
	if err := os.Truncate(f.at(key, Open), p.bytes); err != nil {
		return nil, err
	}
	f.used += p.bytes - x.bytes
	x.bytes, x.busy = p.bytes, true
	return &File{f, key}, nil
}

// Remove deletes an answer of an owner, and says whether there was one. Who writes to it gets an error.
func (f *Folder) Remove(owner, id string) bool {
	key := keyOf(owner, id)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files[key] == nil {
		return false
	}
	f.remove(key)
	return true
}

// Unfinished reads the answers that are to go on, oldest first. odd is why files that have the name of one are none.
func (f *Folder) Unfinished() (all []*Past, odd []error) {
	f.mu.Lock()
	var keys []string
	for key, x := range f.files {
		if x.state == Open && !x.busy {
			keys = append(keys, key)
		}
	}
	f.mu.Unlock()
	slices.Sort(keys)
	for _, key := range keys {
		data, err := readFile(f.at(key, Open))
		var p *Past
		if err == nil {
			p, err = parse(data, f.key, key)
		}
		if err == nil && keyOf(p.Owner, p.ID) != key {
			err = errors.New("it is of another request")
		}
		if err != nil {
			odd = append(odd, fmt.Errorf("%s: %w", f.at(key, Open), err))
			continue
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *Past) int { return cmp.Compare(a.At, b.At) })
	return all, odd
}
