package mem

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// Available returns how many bytes the system says can be taken without swapping (MemAvailable of /proc/meminfo), or a
// careful guess where it does not say.
func Available() int64 {
	const guess = 4 << 30
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return guess
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:")
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return guess
		}
		return kib << 10
	}
	return guess
}
