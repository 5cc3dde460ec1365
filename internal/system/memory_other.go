//go:build unix && !linux && !darwin

package system

// AvailableMemory is not known on this system.
func AvailableMemory() (bytes int64, known bool) { return 0, false }

// InstalledMemory is not known on this system.
func InstalledMemory() (bytes int64, known bool) { return 0, false }
