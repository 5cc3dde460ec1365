package exchange

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"
)

// sleeper is fasthttp's cleaner of idle workers. It wakes up every half second and ends when its server has: later
// than goleak waits.
const sleeper = "github.com/valyala/fasthttp.(*workerPool).Start.func2"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(sleeper)) }

// readTimeout is what a request may take to arrive: enough for any that is sent at once, by a busy machine too.
const readTimeout = 2 * time.Second

// longest is how long a test waits for what must come.
const longest = time.Minute

// serve runs a handler on a loopback port. Each exchange that ends sends its status.
func serve(t *testing.T, handle func(*fasthttp.RequestCtx, *Exchange)) (addr string, statuses chan int) {
	t.Helper()
	return serveUntil(t, context.Background(), time.Second, handle)
}

// serveUntil ends the Context of all exchanges with base.
func serveUntil(t *testing.T, base context.Context, patience time.Duration,
	handle func(*fasthttp.RequestCtx, *Exchange)) (addr string, statuses chan int) {
	t.Helper()
	statuses = make(chan int, 16)
	s := &fasthttp.Server{
		NoDefaultDate: true, ReadTimeout: readTimeout, IdleTimeout: time.Minute,
		MaxIdleWorkerDuration: 100 * time.Millisecond,
		Handler: func(rc *fasthttp.RequestCtx) {
			x := Begin(base, rc, "id", patience, zerolog.Nop(), func(_ *Exchange, status int) { statuses <- status })
			handle(rc, x)
			x.Answered(rc.Response.StatusCode())
		},
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go s.Serve(ln)
	t.Cleanup(func() { require.NoError(t, s.Shutdown()) })
	return ln.Addr().String(), statuses
}

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

// TestGone ends the Context in every way in which a client can go, at once and longer after the read timeout.
func TestGone(t *testing.T) {
	for name, leave := range map[string]func(*net.TCPConn, chan int){
		"closes":      func(c *net.TCPConn, _ chan int) { c.Close() },
		"resets":      func(c *net.TCPConn, _ chan int) { c.SetLinger(0); c.Close() },
		"closes half": func(c *net.TCPConn, _ chan int) { c.CloseWrite() },
		"waits and closes": func(c *net.TCPConn, statuses chan int) {
			time.Sleep(readTimeout + 100*time.Millisecond)
			require.Empty(t, statuses, "the read timeout is over, but the client is there")
			c.Close()
		},
		"pipelines": func(c *net.TCPConn, _ chan int) {
			io.WriteString(c, request)
			time.Sleep(50 * time.Millisecond)
			c.Close()
		},
	} {
		started := make(chan struct{}, 2) // of who pipelines: fasthttp may go on with its second request
		addr, statuses := serve(t, func(_ *fasthttp.RequestCtx, x *Exchange) {
			x.Watch()
			started <- struct{}{}
			<-x.Context.Done()
		})
		conn := dial(t, addr)
		io.WriteString(conn, request)
		<-started
		leave(conn, statuses)
		select {
		case status := <-statuses:
			require.Equal(t, StatusGone, status, name)
		case <-time.After(longest):
			t.Fatalf("a client that %s was not noticed", name)
		}
	}
}

// TestKeepAlive: after a watch the connection is as good as before.
func TestKeepAlive(t *testing.T) {
	n := 0
	addr, _ := serve(t, func(rc *fasthttp.RequestCtx, x *Exchange) {
		x.Watch()
		n++
		body := fmt.Sprintf("answer %d", n)
		if n%2 == 0 {
			x.Stream(rc, "text/plain", nil, func(w *Writer) { w.Send([]byte(body)) })
			return
		}
		rc.SetBodyString(body)
	})
	conn := dial(t, addr)
	in := bufio.NewReader(conn)
	for i := range 6 {
		if i == 4 { // the next request comes while this one is answered
			io.WriteString(conn, request+request)
		} else if i < 4 {
			io.WriteString(conn, request)
		}
		var answer fasthttp.Response
		require.NoError(t, answer.Read(in))
		require.Equal(t, fmt.Sprintf("answer %d", i+1), string(answer.Body()))
		if i == 2 {
			time.Sleep(readTimeout + 100*time.Millisecond)
		}
	}
}

// TestPanicInWriter: it costs the stream, not the process, and the client is told.
func TestPanicInWriter(t *testing.T) {
	addr, statuses := serve(t, func(rc *fasthttp.RequestCtx, x *Exchange) {
		x.Watch()
		x.Stream(rc, "text/plain", []byte("broken"), func(w *Writer) {
			w.Send([]byte("first "))
			panic("on purpose")
		})
	})
	conn := dial(t, addr)
	for range 2 {
		io.WriteString(conn, request)
		var answer fasthttp.Response
		require.NoError(t, answer.Read(bufio.NewReader(conn)))
		require.Equal(t, "first broken", string(answer.Body()))
		require.Equal(t, 200, <-statuses)
	}
}

// TestBreakOff: what was sent before an answer breaks off arrives, and after it the end of the connection, not of the
// answer.
func TestBreakOff(t *testing.T) {
	addr, statuses := serve(t, func(rc *fasthttp.RequestCtx, x *Exchange) {
		x.Stream(rc, "text/plain", nil, func(w *Writer) {
			w.Send([]byte("first"))
			w.BreakOff()
			if w.Send([]byte("second")) == nil {
				t.Error("something is sent after the end")
			}
		})
	})
	for range 100 {
		conn := dial(t, addr)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(longest)))
		io.WriteString(conn, request)
		all, err := io.ReadAll(conn)
		require.NoError(t, err)
		_, body, ok := strings.Cut(string(all), "\r\n\r\n")
		require.True(t, ok, "%q", all)
		require.Equal(t, "5\r\nfirst\r\n", body)
		require.Equal(t, StatusGone, <-statuses)
	}
	for range 100 {
		conn := dial(t, addr)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(longest)))
		io.WriteString(conn, strings.Replace(request, "1.1", "1.0", 1))
		all, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Regexp(t, "\r\n\r\nfirst$", string(all))
		<-statuses
	}
}

// TestFrozen: a client that reads nothing ends the Context when the patience is over.
func TestFrozen(t *testing.T) {
	addr, statuses := serve(t, func(rc *fasthttp.RequestCtx, x *Exchange) {
		x.Watch()
		x.Stream(rc, "text/plain", nil, func(w *Writer) {
			for w.Send([]byte(strings.Repeat("x", 10_000))) == nil {
			}
		})
	})
	conn := dial(t, addr)
	require.NoError(t, conn.SetReadBuffer(4096))
	io.WriteString(conn, request)
	select {
	case status := <-statuses:
		require.Equal(t, StatusGone, status)
	case <-time.After(longest):
		t.Fatal("the stream goes on for nobody")
	}
}

// TestLastWords: once the Context has ended, a client that reads nothing costs a second, however long our patience is,
// whether a write waits for it already or begins then.
func TestLastWords(t *testing.T) {
	fill := func(w *Writer) {
		for w.Send([]byte(strings.Repeat("x", 10_000))) == nil {
		}
	}
	for name, write := range map[string]func(w *Writer, end func()){
		"waiting": func(w *Writer, end func()) {
			time.AfterFunc(200*time.Millisecond, end)
			fill(w)
		},
		"afterwards": func(w *Writer, end func()) {
			end()
			time.Sleep(lastWords / 4) // what the end of the Context sets off is done
			fill(w)
		},
	} {
		t.Run(name, func(t *testing.T) {
			base, end := context.WithCancel(context.Background())
			defer end()
			began := make(chan time.Time, 1)
			addr, statuses := serveUntil(t, base, time.Minute, func(rc *fasthttp.RequestCtx, x *Exchange) {
				x.Stream(rc, "text/plain", nil, func(w *Writer) {
					began <- time.Now()
					write(w, end)
				})
			})
			conn := dial(t, addr)
			require.NoError(t, conn.SetReadBuffer(4096))
			io.WriteString(conn, request)
			select {
			case <-statuses:
				took := time.Since(<-began)
				require.Greater(t, took, lastWords/2, "it had time to read them")
			case <-time.After(10 * lastWords):
				t.Error("the write waits as if there were all the time in the world")
				conn.Close()
			}
		})
	}
}
