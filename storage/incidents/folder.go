package incidents

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/storage/sealed"
)

const (
	privateFile = 0o600

	// extension ends the names of files.
	extension = ".trace"
	// stamp is how a name says when its run began, in UTC; names in order are in the order of time.
	stamp = "20060102T150405.000000"
)

const (
	// Least is the least that a folder may take.
	Least = 1 << 20
	// mostFile is how large a file grows at most, if it gets small batches; parts is how many files of equal size a
	// folder has at least.
	mostFile = 64 << 20
	parts    = 16
)

// Folder is a folder of traces that this process writes. Its methods are called by one goroutine at a time.
type Folder struct {
	path string
	most int64
	key  *sealed.Key // nil: files are not encrypted
	lock io.Closer

	files  []file // in the order of their names
	used   int64
	out    *os.File // nil: the next batch begins a run
	run    string
	number int // of out in the run
}

type file struct {
	name  string
	bytes int64
}

// OpenFolder opens a folder that may take so many bytes, and makes it if there is none. What is too much is removed.
func OpenFolder(path string, most int64) (*Folder, error) {
	if most < Least {
		return nil, fmt.Errorf("%d bytes are too few for a folder of incidents: want at least %d", most, Least)
	}
	lock, err := safefile.Hold(path)
	if err != nil {
		return nil, err
	}
	f := &Folder{path: path, most: most, lock: lock}
	if f.files, err = list(path); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	for _, x := range f.files {
		f.used += x.bytes
	}
	f.room(0)
	return f, nil
}

// list lists the files of a folder.
func list(path string) (all []file, err error) {
	entries, err := os.ReadDir(path) // by name
	for _, e := range entries {
		if _, _, ok := parse(e.Name()); !ok || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil {
			all = append(all, file{e.Name(), info.Size()})
		}
	}
	return all, err
}

// parse takes the name of a file apart.
func parse(name string) (run string, number int, ok bool) {
	base, trace := strings.CutSuffix(name, extension)
	run, digits, cut := strings.Cut(base, "-")
	_, err := fmt.Sscanf(digits, "%d", &number)
	if !trace || !cut || err != nil || name != nameOf(run, number) {
		return "", 0, false
	}
	_, err = time.Parse(stamp, run)
	return run, number, err == nil
}

func nameOf(run string, number int) string { return fmt.Sprintf("%s-%06d%s", run, number, extension) }

// Encrypt has files written by a key, if there is one. It is called before anything is written.
func (f *Folder) Encrypt(key *sealed.Key) { f.key = key }

// Path is where the folder is.
func (f *Folder) Path() string { return f.path }

// Close ends the writing, and lets others write there.
func (f *Folder) Close() {
	f.Part()
	_ = f.lock.Close()
}

// Part has the next batch begin a run: what it says does not go on from what was written before.
func (f *Folder) Part() {
	if f.out != nil {
		_ = f.out.Close() // all of it is written
	}
	f.out = nil
}

// Append adds a batch of whole records of a trace. Where it begins a file, head goes before it. After an error the next
// batch begins a run.
func (f *Folder) Append(records []byte, head func() []byte, now time.Time) error {
	err := f.add(records, head, now)
	if err != nil {
		f.Part()
	}
	return err
}

func (f *Folder) add(records []byte, head func() []byte, now time.Time) error {
	switch {
	case f.out == nil:
		f.run, f.number = now.UTC().Format(stamp), 0
	case f.files[len(f.files)-1].bytes+int64(len(records)) > min(mostFile, f.most/parts):
		f.Part()
	default:
		return f.write(records)
	}
	if err := f.begin(head()); err != nil {
		return err
	}
	return f.write(records)
}

// begin begins the next file of the run.
func (f *Folder) begin(head []byte) (err error) {
	f.number++
	name := nameOf(f.run, f.number)
	f.out, err = os.OpenFile(filepath.Join(f.path, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateFile)
	if err != nil {
		f.out = nil
		return err
	}
	f.files = append(f.files, file{name: name})
	if f.key != nil {
		if err := f.put(sealedHead(name)); err != nil {
			return err
		}
	}
	return f.write(head)
}

// write adds records to the file, encrypted if there is a key.
func (f *Folder) write(records []byte) error {
	if f.key != nil {
		last := f.files[len(f.files)-1]
		records = appendSealed(nil, records, f.key, last.name, last.bytes)
	}
	return f.put(records)
}

// put adds bytes to the file, and removes old files where there is no room for them.
func (f *Folder) put(data []byte) error {
	if !f.room(int64(len(data))) {
		return fmt.Errorf("%d bytes are recorded at once, and the folder may have %d", len(data), f.most)
	}
	n, err := f.out.Write(data)
	f.files[len(f.files)-1].bytes += int64(n)
	f.used += int64(n)
	return err
}

// room removes the oldest files until there is room for so many bytes, and says whether there is.
func (f *Folder) room(bytes int64) bool {
	for f.used+bytes > f.most && len(f.files) > 0 {
		if f.out != nil && len(f.files) == 1 {
			return false // it is being written
		}
		_ = os.Remove(filepath.Join(f.path, f.files[0].name)) // somebody may have removed it
		f.used -= f.files[0].bytes
		f.files = slices.Delete(f.files, 0, 1)
	}
	return f.used+bytes <= f.most
}
