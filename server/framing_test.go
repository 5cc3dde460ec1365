package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// raw sends bytes as they are and returns the answers until the connection ends.
func (r *running) raw(t *testing.T, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, request)
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patient)))
	answer, err := io.ReadAll(conn)
	require.NoError(t, err, "the connection is not closed: %s", answer)
	return string(answer)
}

func reader(conn net.Conn) *bufio.Reader { return bufio.NewReader(conn) }

// TestFraming: a request that two readers could read as two different ones is refused, and the connection ends: what
// follows on it is not read.
func TestFraming(t *testing.T) {
	r := start(t, Options{}, nil)
	const head, ask = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n", `{"prompt":"one","max_tokens":1}`
	smuggled := "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(ask), ask)
	for name, request := range map[string]string{
		"both lengths":           head + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked,
		"a space in a name":      head + "Content-Length : 4\r\n\r\n{}  ",
		"a space in a size":      head + "Transfer-Encoding: chunked\r\n\r\n2 \r\n{}\r\n0\r\n\r\n",
		"a space before a size":  head + "Transfer-Encoding: chunked\r\n\r\n 2\r\n{}\r\n0\r\n\r\n",
		"a folded line":          head + "X: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
		"a version to come":      strings.Replace(head, "1.1", "1.2", 1) + "Content-Length: 2\r\n\r\n{}",
		"a version of two parts": strings.Replace(head, "1.1", "3.7", 1) + "Content-Length: 2\r\n\r\n{}",
		"identity":               head + "Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}",
		"line feeds alone":       strings.ReplaceAll(head, "\r", "") + "\n",
		"chunks for HTTP/1.0":    strings.Replace(head, "1.1", "1.0", 1) + "Transfer-Encoding: chunked\r\n\r\n" + chunked,
	} {
		answer := r.raw(t, request+smuggled)
		require.True(t, strings.HasPrefix(answer, "HTTP/1.1 400 "), "%s: %s", name, answer)
		require.Equal(t, 1, strings.Count(answer, "\r\nDate: "), "%s: %s", name, answer)
		require.Contains(t, answer, "\r\nConnection: close\r\n", name)
		require.Contains(t, answer, "\r\nDate: ", name)
		require.Contains(t, answer, `"code":"invalid_http"`, name)
	}
	good := r.raw(t, head+"Transfer-Encoding: chunked\r\n\r\n"+chunked+strings.Replace(smuggled, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
	require.Equal(t, 2, strings.Count(good, "HTTP/1.1 200 OK\r\n"), good)
	require.Equal(t, 2, strings.Count(good, "\r\nDate: "), good)
}

// TestHTTP10: clients of HTTP/1.0 get no chunks, and a close, whatever they ask for.
func TestHTTP10(t *testing.T) {
	r := start(t, Options{}, nil)
	for _, stream := range []bool{false, true} {
		for _, more := range []string{"", "Connection: keep-alive\r\n"} {
			body := fmt.Sprintf(`{"prompt":"one two","max_tokens":4,"temperature":0,"stream":%v}`, stream)
			answer := r.raw(t, fmt.Sprintf("POST /v1/completions HTTP/1.0\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s", more, len(body), body))
			require.True(t, strings.HasPrefix(answer, "HTTP/1.1 200 OK\r\n"), answer)
			require.NotContains(t, answer, "Transfer-Encoding")
			require.Contains(t, answer, "\r\nConnection: close\r\n")
			require.Contains(t, answer, "\r\nDate: ")
			parsed, err := http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), nil)
			require.NoError(t, err)
			text, err := io.ReadAll(parsed.Body)
			require.NoError(t, err)
			if stream {
				require.True(t, strings.HasPrefix(string(text), "data: {") && strings.HasSuffix(string(text), "data: [DONE]\n\n"), "%s", text)
			} else {
				require.True(t, strings.HasSuffix(string(text), "}"), "%s", text)
			}
		}
	}
	r.open(t, 0)
}

// TestUnreadBody: what was not read of a request is not taken for the next one, and its client reads why.
func TestUnreadBody(t *testing.T) {
	r := start(t, Options{APIKeys: []string{"secret"}}, nil)
	body := strings.Repeat("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 50_000)
	answer := r.raw(t, fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	require.True(t, strings.HasPrefix(answer, "HTTP/1.1 401 "), "%.100s", answer)
	require.Equal(t, 1, strings.Count(answer, "\r\nDate: "))
}
