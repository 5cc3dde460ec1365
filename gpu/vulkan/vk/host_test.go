//go:build cgo && linux

package vk

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/mem"
)

// TestImport: the device copies from memory of the program what is there now, and what is written there later.
func TestImport(t *testing.T) {
	l, d := open(t)
	defer shut(t, l, d)
	memory, err := mem.Alloc(8 << 10)
	require.NoError(t, err)
	defer func() { require.NoError(t, mem.Free(memory)) }()
	if d.Facts.HostAlignment == 0 {
		_, err := d.Import(memory)
		require.ErrorContains(t, err, "imports no memory of programs")
		return
	}
	from, err := d.Import(memory)
	require.NoError(t, err)
	to, err := d.Allocate(Staging, 2000)
	require.NoError(t, err)
	defer d.Free(from, to)
	line, err := d.NewTimeline()
	require.NoError(t, err)
	defer line.Close()
	for round := range uint64(3) {
		for i := range memory {
			memory[i] = byte(uint64(i)*7 + round)
		}
		r, err := d.Record(0)
		require.NoError(t, err)
		r.Copy(to, 0, from, 4100, 2000)
		r.BarrierToHost()
		require.NoError(t, r.End())
		require.NoError(t, d.Submit([]*Recording{r}, nil, Point{Timeline: line, Value: round + 1}))
		await(t, d, line, round+1)
		require.Equal(t, memory[4100:6100], to.Bytes)
		r.Close()
	}
}

// TestImportRefuses says what cannot be imported, and leaves nothing behind.
func TestImportRefuses(t *testing.T) {
	l, d := open(t)
	defer shut(t, l, d)
	if d.Facts.HostAlignment == 0 {
		t.Skip("the device imports no memory")
	}
	memory, err := mem.Alloc(8 << 10)
	require.NoError(t, err)
	defer func() { require.NoError(t, mem.Free(memory)) }()
	for _, part := range [][]byte{nil, memory[:100], memory[1:4097]} {
		_, err = d.Import(part)
		require.ErrorContains(t, err, "imports")
	}
	grain := d.Facts.HostAlignment
	d.Facts.HostAlignment = 0
	_, err = d.Import(memory)
	require.ErrorContains(t, err, "imports no memory of programs")
	d.Facts.HostAlignment = grain
	d.trial = &Trial{Fails: func(call string) Result {
		if call == "vkAllocateMemory" {
			return outOfHostMemory
		}
		return Success
	}}
	_, err = d.Import(memory)
	require.Error(t, err)
	d.trial = nil
}
