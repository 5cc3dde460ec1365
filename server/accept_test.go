package server

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// lacking is a listener whose attempts to accept fail, one after the other, and which is closed then.
type lacking struct {
	net.Listener
	with []error
	now  []time.Duration // when each was tried
	from time.Time
}

func (f *lacking) Accept() (net.Conn, error) {
	f.now = append(f.now, time.Since(f.from))
	if len(f.with) == 0 {
		return nil, net.ErrClosed
	}
	err := f.with[0]
	f.with = f.with[1:]
	return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
}

// lackingListener is a listener before such a one.
func lackingListener(with ...error) (*listener, *lacking) {
	f := &lacking{with: with, from: time.Now()}
	return &listener{Listener: f, conns: map[*conn]struct{}{}, shut: make(chan struct{}), short: func(error) {}}, f
}

// TestAcceptGoesOn: what the system lacks for the moment is asked for again, ever later; other errors are the end.
func TestAcceptGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lacks := []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}
		d, f := lackingListener(append(lacks, lacks...)...)
		_, err := d.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
		var want []time.Duration
		for _, ms := range []int{0, 5, 15, 35, 75, 155, 315, 635, 1275, 2275, 3275} {
			want = append(want, time.Duration(ms)*time.Millisecond)
		}
		require.Equal(t, want, f.now)

		d, _ = lackingListener(syscall.EINVAL, syscall.EMFILE)
		_, err = d.Accept()
		require.ErrorIs(t, err, syscall.EINVAL)

		d, f = lackingListener(lacks[:4]...)
		close(d.shut)
		_, err = d.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
		require.Zero(t, f.now[4], "a server that stops waits for nothing")
	})
}

// TestConnections: some of the descriptors that a process may have are left for what is no connection.
func TestConnections(t *testing.T) {
	for descriptors, want := range map[uint64]int{
		32: 16, 64: 32, 128: 64, 256: 192, 1024: 960, 1088: 1024, 65536: 1024, math.MaxUint64: 1024,
	} {
		require.Equal(t, want, connections(descriptors), "of %d", descriptors)
	}
}

// TestFewDescriptors: a process without a descriptor for one more connection goes on, closes one that waits, and what
// it answers is not disturbed.
func TestFewDescriptors(t *testing.T) {
	const limit, left = 64, 8
	c := startCommand(t, exec.Command("sh", "-c", fmt.Sprintf("ulimit -n %d && %s=%d exec \"$0\"", limit, filesLeft, left),
		os.Args[0]))
	r := &running{addr: c.addr, url: c.url, http: c.http}
	answered := r.dial(t, "/v1/completions", endless(true, ""))
	readEvents(t, answered, 1)
	for range 97 {
		silent, err := net.Dial("tcp", c.addr)
		require.NoError(t, err)
		defer silent.Close()
	}
	status, err := c.ask("/v1/completions", `{"prompt":"one","max_tokens":2}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	readEvents(t, answered, 100)
}

// filesLeft in the environment of a child is how many descriptors its connections have.
const filesLeft = "SLUICE_TEST_FILES_LEFT"

// hold opens files until only so many descriptors are left.
func hold(left int) {
	var last []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		last = append(last, f)
	}
	for _, f := range last[len(last)-left:] {
		f.Close()
	}
	held = last[:len(last)-left]
}

var held []*os.File // so that nobody closes them
