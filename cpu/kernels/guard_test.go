package kernels

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/system"
)

// guarded copies data to memory that is followed by a page which may not be touched.
func guarded(t testing.TB, data []byte) []byte {
	page := os.Getpagesize()
	size := (len(data) + page - 1) / page * page
	mem, err := system.MapMemory(size + page)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, system.UnmapMemory(mem)) })
	require.NoError(t, system.ForbidMemory(mem[size:]))
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
