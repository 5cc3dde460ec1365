//go:build unix

package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// guarded copies data to memory that is followed by a page which may not be touched.
func guarded(t testing.TB, data []byte) []byte {
	page := unix.Getpagesize()
	size := (len(data) + page - 1) / page * page
	mem, err := unix.Mmap(-1, 0, size+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(mem)) })
	require.NoError(t, unix.Mprotect(mem[size:], unix.PROT_NONE))
	at := mem[size-len(data) : size]
	copy(at, data)
	return at
}

// scope is a part of a test, with cleanups of its own: a process may have some 65,000 areas of memory, and tests that
// free theirs at their end run out of them.
type scope struct {
	testing.TB
	cleanups []func()
}

func (s *scope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *scope) end() {
	for _, f := range s.cleanups {
		f()
	}
}
