package system

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/windows"
)

// Flags of OpenFile: neither has a counterpart, and links take privileges to make.
const NoWait, NoFollow = 0, 0

// OpenFile is os.OpenFile; the file can be renamed and removed while it is open. The permissions of new files are those
// of their folder.
func OpenFile(path string, flags int, _ fs.FileMode) (*os.File, error) {
	fail := func(err error) (*os.File, error) { return nil, &fs.PathError{Op: "open", Path: path, Err: err} }
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return fail(err)
	}
	access := map[int]uint32{os.O_RDONLY: windows.GENERIC_READ, os.O_WRONLY: windows.GENERIC_WRITE,
		os.O_RDWR: windows.GENERIC_READ | windows.GENERIC_WRITE}[flags&(os.O_RDONLY|os.O_WRONLY|os.O_RDWR)]
	if flags&os.O_APPEND != 0 {
		access = access&^windows.GENERIC_WRITE | windows.FILE_APPEND_DATA | windows.SYNCHRONIZE |
			windows.FILE_WRITE_ATTRIBUTES | windows.FILE_READ_ATTRIBUTES
	}
	how := uint32(windows.OPEN_EXISTING)
	switch {
	case flags&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		how = windows.CREATE_NEW
	case flags&(os.O_CREATE|os.O_TRUNC) == os.O_CREATE|os.O_TRUNC:
		how = windows.CREATE_ALWAYS
	case flags&os.O_CREATE != 0:
		how = windows.OPEN_ALWAYS
	}
	h, err := windows.CreateFile(name, access, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
		nil, how, windows.FILE_ATTRIBUTE_NORMAL|windows.FILE_FLAG_BACKUP_SEMANTICS, 0) // the last flag opens folders
	if err != nil {
		return fail(err)
	}
	return os.NewFile(uintptr(h), path), nil
}

// MapFile maps the first n > 0 bytes of a file, read only.
func MapFile(f *os.File, n int) ([]byte, error) {
	mapping, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return nil, err
	}
	at, err := windows.MapViewOfFile(mapping, windows.FILE_MAP_READ, 0, 0, uintptr(n))
	if err := errors.Join(err, windows.CloseHandle(mapping)); err != nil { // the view keeps the mapping
		return nil, err
	}
	return bytesAt(at, n), nil
}

// UnmapFile ends a mapping as MapFile returned it.
func UnmapFile(b []byte) error { return windows.UnmapViewOfFile(address(b)) }

// LockFile locks a file against other holders until it is closed; the error is ErrLocked if one has it. Windows keeps
// others from locked bytes: the lock is on one far behind any file's end.
func LockFile(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{OffsetHigh: 1<<31 - 1})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return nil
}

// Links is 1: how many names a file has is not known by what os.Stat returns.
func Links(fs.FileInfo) int { return 1 }

// LinkTo makes a link to a file, whose target is relative to its folder: where links take privileges that the person
// lacks, another name of the file, which must be on the same drive.
func LinkTo(target, path string) error {
	_ = os.Symlink(target, path)
	if _, err := os.Lstat(path); err == nil { // Wine 8 says that it made one, and has not
		return nil
	}
	return os.Link(filepath.Join(filepath.Dir(path), target), path)
}

// LinksTo reports whether there is a link as LinkTo makes it.
func LinksTo(path, target string) bool {
	link, err := os.Stat(path)
	if err != nil {
		return false
	}
	file, err := os.Stat(filepath.Join(filepath.Dir(path), target))
	return err == nil && os.SameFile(link, file)
}

// SyncFolder does nothing: NTFS has a journal of names.
func SyncFolder(string) error { return nil }

// RenameNew renames a file to a name, which must be free.
func RenameNew(from, to string) error {
	source, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	target, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	return windows.MoveFileEx(source, target, 0)
}

// ReadAt does one read, which may be short. Reads of a file from OpenDirect are under way together; of others Windows
// does one after the other.
func ReadAt(f *os.File, b []byte, at int64) (int, error) {
	event, err := windows.CreateEvent(nil, 1, 0, nil)
	if err != nil {
		return 0, err
	}
	defer windows.CloseHandle(event) //nolint:errcheck // nobody could do anything about it
	// The lowest bit keeps the read's end from the queue of Go's runtime (GetQueuedCompletionStatus).
	o := windows.Overlapped{Offset: uint32(at), OffsetHigh: uint32(at >> 32), HEvent: event | 1}
	var n uint32
	file := windows.Handle(f.Fd())
	if err = windows.ReadFile(file, b, &n, &o); errors.Is(err, windows.ERROR_IO_PENDING) {
		err = windows.GetOverlappedResult(file, &o, &n, true)
	}
	switch {
	case errors.Is(err, windows.ERROR_HANDLE_EOF):
		err = nil // the caller sees it by the short read
	case errors.Is(err, windows.ERROR_INVALID_PARAMETER):
		err = syscall.EINVAL // not aligned, as other systems say it
	}
	return int(n), err
}

// Room returns the bytes that this user may still write to the disk of a folder.
func Room(folder string) (int64, error) {
	name, err := windows.UTF16PtrFromString(folder)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return int64(min(free, 1<<62)), err
}

// DeviceOf is not known: Windows has no numbers of devices.
func DeviceOf(string) (major, minor uint32, err error) { return 0, 0, errors.ErrUnsupported }
