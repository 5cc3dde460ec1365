package safefile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sluice-ai/sluice/internal/system"
)

// ErrTaken says that the name is taken, and that the caller did not ask to replace it.
var ErrTaken = errors.New("is there already")

// Unfit says why a new file cannot have a name.
type Unfit string

func (u Unfit) Error() string { return string(u) }

// File is a file that is being written, and has no name until Commit. It may also be a pipe or a terminal, which gets
// written data at once.
type File struct {
	*os.File
	Stream bool // it is a pipe or a device of characters

	path, beside string // beside: the name that it has meanwhile, or ""
	replace      bool
}

// Create begins a file that Commit puts at path, with perm less the process's umask. If the name is taken now, or by
// the time of Commit, the error is ErrTaken unless replace is set. Errors do not name the file.
func Create(path string, perm fs.FileMode, replace bool) (*File, error) {
	return create(path, perm, replace, system.Unnamed)
}

func create(path string, perm fs.FileMode, replace bool,
	unnamed func(folder string, perm fs.FileMode) (*os.File, error)) (*File, error) {
	if number, ok := system.Descriptor(path); ok {
		f, err := system.Duplicate(number, path)
		if err != nil {
			return nil, bare(err)
		}
		return &File{File: f, Stream: true}, nil
	}
	switch mode, err := look(path); {
	case mode&(fs.ModeNamedPipe|fs.ModeCharDevice) != 0:
		f, err := system.OpenFile(path, os.O_WRONLY|system.NoWait, 0)
		if err != nil {
			return nil, fmt.Errorf("is %s that takes nothing now: %w", kind(mode), bare(err))
		}
		return &File{File: f, Stream: true}, nil
	case err != nil && !(replace && errors.Is(err, ErrTaken)):
		return nil, err
	}
	return begin(path, perm, replace, unnamed)
}

// Scratch begins a temporary file beside path, readable by its owner alone. It vanishes with Close, or with the
// process.
func Scratch(path string) (*File, error) { return begin(path, 0o600, false, system.Unnamed) }

func begin(path string, perm fs.FileMode, replace bool,
	unnamed func(folder string, perm fs.FileMode) (*os.File, error)) (*File, error) {
	f := &File{path: path, replace: replace}
	var err error
	if f.File, err = unnamed(filepath.Dir(path), perm); err != nil {
		f.File, f.beside, err = claim(path, perm)
	}
	if err != nil {
		return nil, bare(err)
	}
	return f, nil
}

// Free fails with ErrTaken if there is a file at path.
func Free(path string) error {
	_, err := look(path)
	return err
}

// look returns the mode of the file at path, and an error unless a new file may replace it.
func look(path string) (fs.FileMode, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, bare(err)
	case info.IsDir():
		return info.Mode(), Unfit("is a folder: name a file in it")
	case !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0:
		return info.Mode(), Unfit("is " + kind(info.Mode()) + ": choose another name")
	}
	return info.Mode(), ErrTaken
}

// Write writes a whole file at path, as Create and Commit do.
func Write(path string, data []byte, perm fs.FileMode, replace bool) error {
	f, err := Create(path, perm, replace)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return bare(err)
	}
	return f.Commit()
}

// Commit syncs the file and gives it its name. Close must still be called.
func (f *File) Commit() error {
	if f.Stream {
		return nil
	}
	if err := f.Sync(); err != nil {
		return bare(err)
	}
	if f.beside == "" && !f.replace {
		if err := system.LinkUnnamed(f.File, f.path); err != nil {
			return taken(err)
		}
		return syncFolder(f.path)
	}
	if f.beside == "" { // a link takes no name that is taken
		name := waiting(f.path)
		if err := removeStale(name); err != nil {
			return err
		}
		if err := system.LinkUnnamed(f.File, name); err != nil {
			return bare(err)
		}
		f.beside = name
	}
	if err := Publish(f.beside, f.path, f.replace); err != nil {
		return err
	}
	f.beside = ""
	return nil
}

// Meanwhile returns a name by which this process may open the data written so far.
func (f *File) Meanwhile() string {
	if f.beside != "" {
		return f.beside
	}
	return system.Self(f.File)
}

// Close closes the file, and discards it if it was not committed.
func (f *File) Close() error {
	if f.beside != "" {
		_ = os.Remove(f.beside) // the next run will
	}
	return f.File.Close()
}

// Publish renames a complete file. If the name is taken, the error is ErrTaken unless replace is set.
func Publish(from, to string, replace bool) error {
	rename := system.RenameNew
	if replace {
		rename = os.Rename
	}
	if err := rename(from, to); err != nil {
		return taken(err)
	}
	return syncFolder(to)
}

func taken(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return ErrTaken
	}
	return bare(err)
}

// waiting returns the temporary name of a file, for systems where an incomplete file must have one.
func waiting(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".sluice")
}

// claim creates and locks a file under a temporary name.
func claim(path string, perm fs.FileMode) (*os.File, string, error) {
	name := waiting(path)
	var err error
	for range 3 { // another run may remove the file between its creation and its lock
		if err := removeStale(name); err != nil {
			return nil, "", err
		}
		var f *os.File
		if f, err = system.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm); err != nil {
			continue
		}
		if err = lock(f); err == nil && isAt(f, name) {
			return f, name, nil
		}
		err = cmp.Or(err, ErrBusy)
		f.Close()
	}
	return nil, "", err
}

func isAt(f *os.File, name string) bool {
	info, err := f.Stat()
	there, err2 := os.Lstat(name)
	return err == nil && err2 == nil && os.SameFile(info, there)
}

// removeStale removes the temporary file of a killed run. A file that another run holds is an error.
func removeStale(name string) error {
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f, _, err := open(name, os.O_RDWR|system.NoFollow, 0)
	if err != nil {
		return fmt.Errorf("%s is in the way (%w): move it away", name, err)
	}
	defer f.Close()
	if err := lock(f); err != nil {
		return err
	}
	return bare(os.Remove(name))
}

// ErrBusy says that another run holds the file.
var ErrBusy = errors.New("is being written by another run: wait for it")

// syncFolder syncs the folder of path, so that a new name survives a crash.
func syncFolder(path string) error { return bare(system.SyncFolder(filepath.Dir(path))) }

// lock locks a file against other runs until it is closed. On file systems without locks it does nothing.
func lock(f *os.File) error {
	if errors.Is(system.LockFile(f), system.ErrLocked) {
		return ErrBusy
	}
	return nil
}
