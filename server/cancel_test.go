package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
)

// dial sends a request on a connection of its own.
func (r *running) dial(t *testing.T, path, body string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
	require.NoError(t, err)
	return conn.(*net.TCPConn)
}

// endless is a request whose answer takes longer than any test waits.
func endless(stream bool, more string) string {
	return fmt.Sprintf(`{"prompt":"one two three","temperature":0,"ignore_eos":true,"stream":%v%s}`, stream, more)
}

// TestCancel holds the law: what computes or waits for a client that is gone stops within 250 ms and gives
// everything back. A busy machine may miss that sometimes; we may not miss it three times in a row.
func TestCancel(t *testing.T) {
	const law = 250 * time.Millisecond
	long := `{"stream":true,"prompt":"` + strings.Repeat("one two three ", 3000) + `"}`
	for _, c := range []struct {
		name, body string
		queued     bool
		reach      func(t *testing.T, r *running, conn net.Conn) // the moment at which the client goes
	}{
		{"streaming", endless(true, ""), false, func(t *testing.T, r *running, conn net.Conn) { readEvents(t, conn, 3) }},
		{"not streaming", endless(false, ""), false, computing},
		{"queued", endless(true, ""), true, func(t *testing.T, r *running, _ net.Conn) { r.open(t, 2) }},
		{"queued, not streaming", endless(false, ""), true, func(t *testing.T, r *running, _ net.Conn) { r.open(t, 2) }},
		{"prefill", long, false, computing},
		{"several choices", endless(true, `,"n":3`), false, func(t *testing.T, r *running, conn net.Conn) { readEvents(t, conn, 3) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, Options{}, func(cfg *actors.Config) {
				cfg.Context, cfg.Sequences, cfg.Rows = 16384, 1, 16 // small steps: the long prompt takes seconds
			})
			before := int64(0)
			if c.queued {
				before = 1
				busy := r.dial(t, "/v1/completions", endless(true, ""))
				readEvents(t, busy, 1)
				go readAll(busy)
			}
			var took time.Duration
			for range 3 {
				conn := r.dial(t, "/v1/completions", c.body)
				c.reach(t, r, conn)
				left := time.Now()
				require.NoError(t, conn.Close())
				r.open(t, before)
				if took = time.Since(left); took <= law {
					break
				}
			}
			t.Logf("stopped after %v", took)
			require.LessOrEqual(t, took, law)
			// The engine is done with a request before its handler has heard of it and writes the line.
			require.Eventually(t, func() bool { return strings.Contains(r.log.String(), `"status":499`) },
				20*time.Second, time.Millisecond, "the log does not say that the client had gone")
		})
	}
}

// TestCancelBefore holds the same law for what comes before the engine: a body that is read, rendered or put into
// tokens for nobody stops within 250 ms.
func TestCancelBefore(t *testing.T) {
	const law = 250 * time.Millisecond
	slow := `{% set ns = namespace(x=0) %}{% for i in range(99999) %}{% for j in range(99999) %}{% set ns.x = i + j %}` +
		`{% endfor %}{% endfor %}`
	r := start(t, Options{}, func(c *actors.Config) { c.File.Meta.Set("tokenizer.chat_template", slow) })
	arguments := hostileText(`{"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\":[`, `\"a\",`,
		`1]}"}}]}]}`, 15<<20)
	for name, body := range map[string]string{
		"rendering": `{"messages":[{"role":"user","content":"Hi"}]}`, "arguments": arguments,
		"escapes": hostileText(`{"messages":[{"role":"user","content":"`, `\u0041`, `"}]}`, 15<<20),
	} {
		var took time.Duration
		for range 3 {
			conn := r.dial(t, "/v1/chat/completions", body)
			begun := func() bool { return r.intake.Used() > 0 || len(body) > 1000 }
			require.Eventually(t, begun, 10*time.Second, time.Millisecond)
			left := time.Now()
			require.NoError(t, conn.Close())
			require.Eventually(t, func() bool { return r.intake.Used() == 0 }, 10*time.Second, time.Millisecond)
			if took = time.Since(left); took <= law {
				break
			}
		}
		t.Logf("%s: stopped after %v", name, took)
		require.LessOrEqual(t, took, law, name)
	}
}

// computing waits until the engine has computed some steps for the request.
func computing(t *testing.T, r *running, _ net.Conn) {
	t.Helper()
	r.open(t, 1)
	from := r.engine.Steps().Count
	require.Eventually(t, func() bool { return r.engine.Steps().Count > from+2 }, time.Minute, time.Millisecond)
}

func readEvents(t *testing.T, conn net.Conn, n int) {
	t.Helper()
	lines := bufio.NewScanner(conn)
	for n > 0 && lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: ") {
			n--
		}
	}
	require.Zero(t, n, "events that did not come: %v", lines.Err())
}

func readAll(conn net.Conn) {
	b := make([]byte, 4096)
	for {
		if _, err := conn.Read(b); err != nil {
			return
		}
	}
}

// TestCancelAfter holds the same law for what comes after the engine: a large answer that is no stream is not written
// on for nobody, nor kept.
func TestCancelAfter(t *testing.T) {
	const law = 250 * time.Millisecond
	r := start(t, Options{}, nil)
	for _, path := range []string{"/v1/completions", "/v1/chat/completions"} {
		body := endless(false, `,"n":16,"max_tokens":100,"logprobs":20`)
		if strings.Contains(path, "chat") {
			body = `{"messages":[{"role":"user","content":"hi"}],"ignore_eos":true,"n":16,"max_tokens":100,"logprobs":true,` +
				`"top_logprobs":20}`
		}
		conn := r.dial(t, path, body)
		require.NoError(t, conn.SetReadBuffer(4096))
		_, err := io.ReadFull(conn, make([]byte, 2000))
		require.NoError(t, err)
		time.Sleep(100 * time.Millisecond)
		require.NotContains(t, r.log.String(), path, "there is more than the network takes")
		left := time.Now()
		require.NoError(t, conn.Close())
		require.Eventually(t, func() bool { return strings.Contains(r.log.String(), path) }, 10*time.Second, time.Millisecond)
		t.Logf("%s: stopped after %v", path, time.Since(left))
		require.LessOrEqual(t, time.Since(left), law, path)
		require.Contains(t, r.log.String(), `"status":499`)
	}
}
