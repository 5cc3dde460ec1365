//go:build unix && !linux

package system

// RenameNew renames a file to a name, which must be free.
func RenameNew(from, to string) error { return LinkNew(from, to) }
