//go:build cgo && linux

package vk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAllocateLess: where there is no memory for a block, there may be some for the buffer alone, or of the host.
func TestAllocateLess(t *testing.T) {
	fail := 0
	trial := &Trial{Fails: func(call string) Result {
		if call == "vkAllocateMemory" && fail > 0 {
			fail--
			return OutOfMemory
		}
		return Success
	}, Facts: func(f *Facts) {
		f.MemoryTypes = []MemoryType{{Local: true, Visible: true, Coherent: true}, {Visible: true, Coherent: true, Cache: true}}
	}}
	l, d := openTrial(t, trial, false) // the driver has one type, and takes any for it
	defer shut(t, l, d)
	for _, c := range []struct {
		place Place
		fails int
		size  uint64 // of the block; 0: there is none
	}{
		{Local, 0, d.blockSize(Local, 1000)}, {Local, 1, 1024}, {Local, 2, 0},
		{Staging, 1, 1024}, {Staging, 2, 0},
		{Stepwise, 1, 1024}, {Stepwise, 2, d.blockSize(Stepwise, 1000)}, {Stepwise, 3, 0},
	} {
		fail = c.fails
		b, err := d.Allocate(c.place, 1000)
		if c.size == 0 {
			require.ErrorIs(t, err, OutOfMemory)
			require.Regexp(t, `^0\.0 MiB of \w+ memory on .*: out of device memory .* MiB`, err.Error())
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.size, d.Allocated(c.place), c)
		require.Equal(t, c.place != Local, b.Bytes != nil)
		d.Free(b)
		require.Zero(t, d.Allocated(c.place))
	}
}

// TestBudget: what is free is what the driver says it is, each time it is asked.
func TestBudget(t *testing.T) {
	used := uint64(1 << 20)
	trial := &Trial{Facts: func(f *Facts) {
		f.Has.Budget = true
		for i := range f.Heaps {
			f.Heaps[i].Size, f.Heaps[i].Budget, f.Heaps[i].Used = 64<<20, 48<<20, used
		}
	}}
	l, d := openTrial(t, trial, false)
	defer shut(t, l, d)
	require.Equal(t, used, d.Facts.Heaps[0].Used)
	used = 40 << 20
	_, err := d.Allocate(Local, 1<<50)
	require.ErrorContains(t, err, "of 64.0 MiB there this program has 40.0 MiB, and 8.0 MiB more are free for it")
	used = 50 << 20 // more than the budget
	_, err = d.Allocate(Local, 1<<50)
	require.ErrorContains(t, err, "and 0.0 MiB more are free for it")
}
