package uring

import (
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// forbidden in the environment makes a test the process from which io_uring_enter is kept, as some containers do.
const forbidden = "SLUICE_TEST_FORBIDDEN"

// TestEnterForbidden: a kernel that makes rings and lets nobody enter them is one without.
func TestEnterForbidden(t *testing.T) {
	if os.Getenv(forbidden) == "" {
		if ok, detail, _ := Probe(); !ok {
			t.Skip(detail)
		}
		c := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
		c.Env = append(os.Environ(), forbidden+"=1", "TMPDIR="+t.TempDir())
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	forbid(t, unix.SYS_IO_URING_ENTER)
	ok, detail, advice := Probe()
	require.NotEmpty(t, advice)
	require.False(t, ok)
	require.Contains(t, detail, "operation not permitted")
	want := content(100_000)
	s := writeSource(t, t.TempDir(), want)
	r, err := Open(2, nil)
	require.NoError(t, err)
	require.Equal(t, "pread", r.Kind())
	require.NoError(t, r.Submit([]Request{{Source: s, Length: len(want), Into: make([]byte, len(want)+Slack)}}))
	var done [1]Completion
	n, err := r.Wait(1, done[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, done[0].Err)
	require.Equal(t, want, done[0].Data)
	require.NoError(t, r.Close())
}

// forbid makes a system call fail with EPERM, on all threads, until the process ends.
func forbid(t *testing.T, call uint32) {
	t.Helper()
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	require.NoError(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&filter)))
	require.Zero(t, errno)
}
