package framing

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const get = "GET / HTTP/1.1\r\nHost: x\r\n"

// good are whole requests, one or several.
var good = []string{
	get + "\r\n", get + "\r\n" + get + "\r\n", "\r\n" + get + "\r\n", "GET / HTTP/1.0\r\n\r\n",
	get + "Content-Length: 3\r\n\r\nabc" + get + "\r\n", get + "content-length:0\r\n\r\n",
	get + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + get + "\r\n",
	get + "Transfer-Encoding: CHUNKED\r\n\r\nA;x=\"y z\"\r\n0123456789\r\n00\r\nX-Sum: 1\r\n\r\n",
	get + "X: \ttabs and \xe9\r\nY:\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
}

// bad are requests with one thing wrong, and what is said of it.
var bad = []struct{ request, text string }{
	{get + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", "both Content-Length and Transfer-Encoding"},
	{get + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", "both Content-Length and Transfer-Encoding"},
	{get + "Content-Length: 3\r\nContent-Length: 3\r\n\r\n", "Content-Length is there twice"},
	{get + "Content-Length: +3\r\n\r\n", `Content-Length is "+3"`}, {get + "Content-Length: 3, 3\r\n\r\n", `Content-Length is "3, 3"`},
	{get + "Content-Length: -1\r\n\r\n", `Content-Length is "-1"`}, {get + "Content-Length:\r\n\r\n", `Content-Length is ""`},
	{get + "Content-Length: 99999999999999999999\r\n\r\n", "Content-Length is"}, {get + "Content-Length: 0x3\r\n\r\n", "Content-Length is"},
	{get + "Content-Length: 1_0\r\n\r\n", "Content-Length is"},
	{get + "Content-Length : 3\r\n\r\n", `a header's name is "Content-Length "`}, {get + "X Y: 3\r\n\r\n", "a header's name is"},
	{get + ": 3\r\n\r\n", "a header's name is"}, {get + "X\r\n\r\n", "a header has no colon"},
	{get + " X: 3\r\n\r\n", "goes on in a second line"}, {get + "X: 3\r\n\tY: 4\r\n\r\n", "goes on in a second line"},
	{get + "X: a\x00b\r\n\r\n", "control character"}, {get + "X: a\rb\r\n\r\n", "carriage return without"},
	{get + "X: 3\n\r\n", "line feed without"}, {"GET / HTTP/1.1\nHost: x\n\n", "line feed without"},
	{get + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "Transfer-Encoding is there twice"},
	{get + "Transfer-Encoding: gzip, chunked\r\n\r\n", "want chunked"}, {get + "Transfer-Encoding: identity\r\n\r\n", "want chunked"},
	{"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0 has no Transfer-Encoding"},
	{"GET / HTTP/1.2\r\n\r\n", "the version is"}, {"GET / HTTP/2.0\r\n\r\n", "the version is"}, {"GET / HTTP/1.10\r\n\r\n", "the version is"},
	{"GET / http/1.1\r\n\r\n", "the version is"}, {"GET / HTTP/0.9\r\n\r\n", "the version is"}, {"GET /\r\n\r\n", "request line"},
	{"GET  / HTTP/1.1\r\n\r\n", "request line"}, {"GET / HTTP/1.1 \r\n\r\n", "request line"}, {"GET /a b HTTP/1.1\r\n\r\n", "request line"},
	{"G(T / HTTP/1.1\r\n\r\n", "request line"}, {" GET / HTTP/1.1\r\n\r\n", "request line"}, {"GET /\x00 HTTP/1.1\r\n\r\n", "request line"},
	{strings.Repeat("\r\n", 5) + get, "empty lines before"}, {get + "X: " + strings.Repeat("x", maxLine), "a line of more than"},
}

// badChunks are bodies of a chunked request with one thing wrong.
var badChunks = []struct{ body, text string }{
	{"3 \r\nabc\r\n", `the size of a chunk is "3 "`}, {" 3\r\nabc\r\n", "the size of a chunk"}, {"\r\nabc\r\n", "the size of a chunk"},
	{"3\t;x\r\nabc\r\n", "the size of a chunk"}, {"0x3\r\nabc\r\n", "the size of a chunk"}, {"-3\r\n", "the size of a chunk"},
	{"+3\r\n", "the size of a chunk"}, {"g\r\n", "the size of a chunk"}, {"fffffffffffffffff\r\n", "the size of a chunk"},
	{"3\nabc\r\n", "line feed without"}, {"3\r\nabcd\r\n", "a chunk is longer"}, {"3\r\nabc\n", "line feed without"},
	{"3;a\x00\r\n", "extension has a control"}, {"3;" + strings.Repeat("x", maxChunk), "a line of more than"},
	{"0\r\nX Y: 1\r\n\r\n", "a header's name is"}, {"0\r\n X: 1\r\n\r\n", "goes on in a second line"},
	{"0\r\n" + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 20), "a trailer of more than"},
}

// in checks bytes in pieces of n.
func in(n int, all string) (good int, err error) {
	var c Checker
	for len(all) > 0 && err == nil {
		piece := all[:min(n, len(all))]
		from := good
		n, checked := c.Check([]byte(piece))
		good, err = from+n, checked
		if err == nil && n != len(piece) {
			panic("bytes are left over")
		}
		all = all[len(piece):]
	}
	return good, err
}

func TestGood(t *testing.T) {
	for _, request := range good {
		for _, n := range []int{1, 2, 7, 1 << 20} {
			var c Checker
			got, err := in(n, request)
			require.NoError(t, err, "%q", request)
			require.Equal(t, len(request), got)
			_, err = c.Check([]byte(request))
			require.NoError(t, err)
			require.True(t, c.Between(), "%q", request)
			_, _ = c.Check([]byte("G"))
			require.False(t, c.Between())
		}
	}
}

func TestBad(t *testing.T) {
	for _, c := range badChunks {
		bad = append(bad, struct{ request, text string }{get + "Transfer-Encoding: chunked\r\n\r\n" + c.body, c.text})
	}
	for _, c := range bad {
		first, err := in(1<<20, c.request)
		require.ErrorIs(t, err, ErrFraming, "%q", c.request)
		require.ErrorContains(t, err, c.text, "%q", c.request)
		for _, n := range []int{1, 3} { // however it is cut
			got, again := in(n, c.request)
			require.Equal(t, err.Error(), again.Error())
			require.Equal(t, first, got)
		}
		after, err := in(1<<20, get+"\r\n"+c.request)
		require.ErrorIs(t, err, ErrFraming)
		require.Equal(t, first+len(get)+2, after, "what came before it is beyond doubt")
	}
}

// FuzzChecker: whatever passes, the standard library reads as the same requests, which end in the same places.
func FuzzChecker(f *testing.F) {
	for _, request := range good {
		f.Add(request)
	}
	for _, c := range bad {
		f.Add(c.request)
	}
	f.Fuzz(func(t *testing.T, all string) {
		if len(all) > 4096 {
			return
		}
		var c Checker
		if n, err := c.Check([]byte(all)); err != nil {
			again, same := in(1, all)
			require.Equal(t, n, again)
			require.Equal(t, err.Error(), same.Error())
			return
		}
		if !c.Between() {
			return
		}
		left := bytes.NewReader([]byte(strings.TrimLeft(all, "\r\n")))
		r := bufio.NewReaderSize(left, 16)
		ends := map[int]bool{}
		for i := range len(all) {
			var c Checker
			if _, err := c.Check([]byte(all[:i+1])); err == nil && c.Between() {
				ends[i+1] = true
			}
		}
		for {
			request, err := http.ReadRequest(r)
			if err != nil {
				return // it has rules of its own for hosts and targets
			}
			_, err = io.Copy(io.Discard, request.Body)
			require.NoError(t, err)
			require.NoError(t, request.Body.Close())
			require.True(t, ends[len(all)-left.Len()-r.Buffered()], "%q: another end than ours", all)
		}
	})
}
