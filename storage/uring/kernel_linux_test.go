package uring

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
	"unsafe"

	sys "github.com/iceber/iouring-go/syscall"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// kernelThreads counts those that the kernel has made for the rings of this thread.
func kernelThreads(t *testing.T) (n int) {
	t.Helper()
	own := fmt.Sprintf("iou-wrk-%d\n", unix.Gettid())
	names, err := filepath.Glob("/proc/self/task/*/comm")
	require.NoError(t, err)
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && string(text) == own {
			n++
		}
	}
	return n
}

// TestCopiers: what comes from the page cache is copied by threads of the kernel, no more of them than may; small
// reads need none.
func TestCopiers(t *testing.T) {
	const size = 1 << 20
	runtime.LockOSThread() // the kernel's threads are those of the thread that submits
	defer runtime.UnlockOSThread()
	require.LessOrEqual(t, copiers(), mostCopiers)
	require.GreaterOrEqual(t, copiers(), 1)
	r, err := Open(16, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	if r.Kind() != "io_uring" {
		t.Skip("io_uring is not available here")
	}
	want, arena := content(size), slabs(t, 16, size+Slack)
	s := writeSource(t, t.TempDir(), want)
	r.resident = func(*os.File, int64, int) bool { return true }
	read := func(length int) {
		var all []Request
		for i := range 16 {
			all = append(all, Request{ID: uint64(i), Source: s, Length: length, Into: arena.Slab(i)})
		}
		require.NoError(t, r.Submit(all))
		for left := 16; left > 0; {
			done := make([]Completion, 16)
			n, err := r.Wait(1, done)
			require.NoError(t, err)
			for _, d := range done[:n] {
				require.NoError(t, d.Err)
				require.True(t, bytes.Equal(want[:length], d.Data))
			}
			left -= n
		}
	}
	before := kernelThreads(t) // of another ring that this thread had
	read(worthWaking - 1)
	require.LessOrEqual(t, kernelThreads(t), before, "small reads")
	read(size)
	require.Positive(t, kernelThreads(t))
	var most [2]uint32 // zeros ask
	k := r.reads.(*kernelRing)
	if sys.IOURingRegister(k.fd, registerWorkers, unsafe.Pointer(&most), 2) == nil { // from Linux 5.15 on
		require.EqualValues(t, copiers(), most[0])
		for until := time.Now().Add(30 * time.Second); kernelThreads(t) > copiers(); time.Sleep(10 * time.Millisecond) {
			require.True(t, time.Now().Before(until), "those of a ring before, which was closed, end when they can")
		}
	}
}
