package exchange

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
)

// numbered are pieces of a body, each of ten bytes; asked counts them.
func numbered(n int, asked *atomic.Int64) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		piece := make([]byte, 0, 10)
		for i := range n {
			asked.Add(1)
			if piece = fmt.Appendf(piece[:0], "%010d", i); !yield(piece) {
				return
			}
		}
	}
}

func numbers(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "%010d", i)
	}
	return all.String()
}

// TestWhole: a small body has a length, a large one comes in chunks, and nothing is lost between its pieces.
func TestWhole(t *testing.T) {
	var asked atomic.Int64
	n := 0
	addr, statuses := serve(t, func(rc *fasthttp.RequestCtx, x *Exchange) {
		x.Watch()
		x.Whole(rc, "application/json", numbered(n, &asked))
	})
	conn := dial(t, addr)
	in := bufio.NewReader(conn)
	for _, n = range []int{0, 1, atOnce / 10, atOnce/10 + 1, atOnce / 5, 500_000} {
		io.WriteString(conn, request)
		answer, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, numbers(n), string(body))
		require.Equal(t, "application/json", answer.Header.Get("Content-Type"))
		if n <= atOnce/10 {
			require.EqualValues(t, len(body), answer.ContentLength)
		} else {
			require.Equal(t, []string{"chunked"}, answer.TransferEncoding)
		}
		require.Equal(t, 200, <-statuses)
	}
	old := dial(t, addr)
	io.WriteString(old, "GET / HTTP/1.0\r\nHost: x\r\n\r\n")
	answer, err := io.ReadAll(old)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(answer), "\r\n\r\n"+numbers(n)))
}

// TestWholeIsMadeWhileItIsRead: what nobody reads is not made, and who leaves stops the making.
func TestWholeIsMadeWhileItIsRead(t *testing.T) {
	var asked atomic.Int64
	addr, statuses := serveUntil(t, context.Background(), 10*time.Minute, func(rc *fasthttp.RequestCtx, x *Exchange) {
		x.Watch()
		x.Whole(rc, "application/json", numbered(1<<30, &asked))
	})
	var took time.Duration
	for range 8 { // a busy machine may miss the law for once
		asked.Store(0)
		conn := dial(t, addr)
		require.NoError(t, conn.SetReadBuffer(4096))
		io.WriteString(conn, request)
		io.ReadFull(conn, make([]byte, 1000))
		var made int64
		require.Eventually(t, func() bool {
			before := made
			made = asked.Load()
			return made == before
		}, longest, 100*time.Millisecond, "it is made for nobody")
		left := time.Now()
		conn.Close()
		require.Equal(t, StatusGone, <-statuses)
		took = time.Since(left)
		require.Less(t, asked.Load(), int64(20*atOnce/10))
		if took < 250*time.Millisecond {
			break
		}
	}
	require.Less(t, took, 250*time.Millisecond)
}

// TestWholeBreaksOff: a body that is cut is not taken for complete.
func TestWholeBreaksOff(t *testing.T) {
	for name, broken := range map[string]func(end func()){
		"the server stops": func(end func()) { end() },
		"a panic":          func(func()) { panic("on purpose") },
	} {
		base, end := context.WithCancel(context.Background())
		var asked atomic.Int64
		addr, statuses := serveUntil(t, base, time.Minute, func(rc *fasthttp.RequestCtx, x *Exchange) {
			x.Whole(rc, "application/json", func(yield func([]byte) bool) {
				once := true
				for piece := range numbered(500_000, &asked) {
					if asked.Load() > 200_000 && once {
						broken(end)
						once = false
					}
					if !yield(piece) {
						return
					}
				}
			})
		})
		conn := dial(t, addr)
		io.WriteString(conn, request)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, name)
		require.Less(t, len(body), 250_000*10, name)
		<-statuses
		end()
	}
}
