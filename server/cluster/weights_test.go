package cluster

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/pass"
)

// TestRanges: only ranges within the file, of so many bytes, are read.
func TestRanges(t *testing.T) {
	for text, want := range map[string][2]int64{"bytes=0-0": {0, 1}, "bytes=5-99": {5, 95}, "bytes=99-99": {99, 1}} {
		from, n, err := ParseRange(text, 100)
		require.NoError(t, err, text)
		require.Equal(t, want, [2]int64{from, n}, text)
	}
	for _, text := range []string{"", "bytes=", "bytes=-5", "bytes=5-", "bytes=5-4", "bytes=0-100", "0-1", "bytes=a-b",
		"bytes=0-1,3-4", "bytes=-1-5", "bytes=0-9223372036854775807", "bytes= 0-1"} {
		_, _, err := ParseRange(text, 100)
		require.ErrorContains(t, err, "the range is", text)
	}
	_, _, err := ParseRange(fmt.Sprintf("bytes=0-%d", MostRange), 1<<40)
	require.ErrorContains(t, err, "want at most")
}

func FuzzParseRange(f *testing.F) {
	f.Add("bytes=0-5", int64(10))
	f.Fuzz(func(t *testing.T, text string, size int64) {
		from, n, err := ParseRange(text, size)
		if err == nil && (from < 0 || n < 1 || n > MostRange || n > size || from > size-n) {
			t.Fatalf("%q of %d bytes: %d from %d on", text, size, n, from)
		}
	})
}

// TestAddresses of models of members.
func TestAddresses(t *testing.T) {
	member, model, ok, err := ParseAddress("member://desk/qwen/3:8b")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []string{"desk", "qwen/3:8b"}, []string{member, model})
	_, _, ok, err = ParseAddress("desk/qwen")
	require.False(t, ok)
	require.NoError(t, err)
	for _, text := range []string{"member://", "member://desk", "member://desk/", "member:///m"} {
		_, _, _, err = ParseAddress(text)
		require.ErrorContains(t, err, "want member://MEMBER/MODEL", text)
	}
}

func FuzzReadWeights(f *testing.F) {
	f.Add([]byte(`{"content":"abc","parts":[{"bytes":100,"head":10}]}`))
	f.Add([]byte(`{"content":"abc","parts":[{"bytes":1e30,"head":-1}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		w, err := ReadWeights(bytes.NewReader(text))
		if err != nil {
			return
		}
		require.NotEmpty(t, w.Content)
		require.NotEmpty(t, w.Parts)
		for _, p := range w.Parts {
			require.True(t, 1 <= p.Head && p.Head <= p.Bytes && p.Bytes <= mostBytes)
		}
	})
}

// TestToldWrongly: what no member says of files is refused.
func TestToldWrongly(t *testing.T) {
	for text, want := range map[string]string{
		`x`:                              "is not JSON as we know it",
		`{}`:                             "it tells the content by 0 characters",
		`{"content":"c"}`:                "it tells of 0 files",
		`{"content":"c","parts":[{}]}`:   "file 1 has 0 bytes",
		strings.Repeat(" ", mostTold+10): "more than",
		`{"content":"` + strings.Repeat("c", 200) + `"}`:                  "200 characters",
		`{"content":"c","parts":[{"bytes":5,"head":6}]}`:                  "of which 6 come before",
		`{"content":"c","parts":[{"bytes":5,"head":0}]}`:                  "of which 0 come before",
		`{"content":"c","parts":[{"bytes":5000000000000000000}]}`:         "file 1 has 5000000000000000000",
		`{"content":"c","parts":[` + strings.Repeat(`{},`, 1500) + `{}]}`: "it tells of 1501 files",
	} {
		_, err := ReadWeights(strings.NewReader(text))
		require.ErrorContains(t, err, want, "%.80s", text)
	}
}

// lending runs what a member at desk answers to reads of files, and returns who reads there.
func lending(t *testing.T, as string, answer http.HandlerFunc) *Lender {
	t.Helper()
	a, err := pass.NewAuthority("town", time.Now())
	require.NoError(t, err)
	parsed := func(name string) *pass.Pass {
		text, _, err := a.Pass(name, time.Now(), time.Hour)
		require.NoError(t, err)
		p, err := pass.Parse(text, time.Now)
		require.NoError(t, err)
		return p
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &http.Server{Handler: answer}
	served := make(chan error, 1)
	go func() { served <- s.Serve(tls.NewListener(ln, parsed(as).Server())) }()
	c, err := New(Options{Pass: parsed("attic"), Addr: "127.0.0.1:1"})
	require.NoError(t, err)
	t.Cleanup(func() {
		c.http.CloseIdleConnections()
		_ = s.Close()
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	c.peers[ln.Addr().String()] = &peer{member: "desk", heard: time.Now(), gone: make(chan struct{})}
	return &Lender{Member: "desk", Model: "m", of: c,
		Weights: Weights{Content: "c", Parts: []WeightsPart{{Bytes: 1000, Head: 10}}}}
}

// TestReadFaults: bytes that are not what was asked for are never taken for it.
func TestReadFaults(t *testing.T) {
	data := bytes.Repeat([]byte("weights "), 125)
	good := func(w http.ResponseWriter, r *http.Request) {
		from, n, err := ParseRange(r.Header.Get("Range"), int64(len(data)))
		if err != nil || r.FormValue("content") != "c" || r.FormValue("part") != "0" || r.FormValue("model") != "m" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		part := data[from:][:n]
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(binary.LittleEndian.AppendUint32(bytes.Clone(part), Sum(0, part)))
	}
	busy := 0
	for name, test := range map[string]struct {
		as     string
		answer http.HandlerFunc
		want   string // "": it is read
	}{
		"well": {"desk", good, ""},
		"busy at first": {"desk", func(w http.ResponseWriter, r *http.Request) {
			if busy++; busy < 3 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			good(w, r)
		}, ""},
		"another member": {"garage", good, `is "garage" now`},
		"short": {"desk", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(data[:100])
		}, "100 of 200 bytes came"},
		"no checksum": {"desk", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(data[50:250])
		}, "the checksum did not come"},
		"garbage": {"desk", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(bytes.Repeat([]byte{7}, 204))
		}, "the checksum of bytes 50 to 250 is"},
		"another file": {"desk", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"error":{"message":"it is another one by now"}}`)
		}, "it answers 409: it is another one by now"},
		"all of the file": {"desk", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }, "it answers 200"},
		"dies in the middle": {"desk", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "204")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(data[50:100])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "50 of 200 bytes came"},
	} {
		t.Run(name, func(t *testing.T) {
			l := lending(t, test.as, test.answer)
			into := make([]byte, 200)
			err := l.Read(t.Context(), 0, into, 50)
			if test.want != "" {
				require.ErrorContains(t, err, test.want)
				require.ErrorContains(t, err, "member desk")
				return
			}
			require.NoError(t, err)
			require.Equal(t, data[50:250], into)
			copies := l.Copies()
			require.True(t, copies[0].Far())
			n, err := copies[0].Remote.ReadAt(into[:7], 3)
			require.NoError(t, err)
			require.Equal(t, data[3:10], into[:n])
		})
	}
}

// TestSessionFaults: whoever has a session lends it; answers that are none are said to be so.
func TestSessionFaults(t *testing.T) {
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"well": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.FormValue("model")+r.FormValue("owner")+r.FormValue("name"))
		}, ""},
		"nobody": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, ErrNoSession.Error()},
		"of another model": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"error":{"message":"it is foreign"}}`)
		}, "it answers 409: it is foreign"},
		"of unknown length": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
		}, "has -1 bytes"},
		"empty": {func(http.ResponseWriter, *http.Request) {}, "has 0 bytes"},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			_, _ = io.WriteString(w, "mo")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			from, size, err := lending(t, "desk", test.answer).of.Session(t.Context(), "m", "o", "n")
			var text []byte
			if err == nil {
				text, err = io.ReadAll(from)
				require.NoError(t, from.Close())
			}
			if test.want != "" {
				require.ErrorContains(t, err, test.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "mon", string(text))
			require.EqualValues(t, 3, size)
		})
	}
}
