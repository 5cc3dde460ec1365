package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	memory "runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// heap is the bytes of all objects, those that are garbage already included, as sampled while work goes on.
func heap(work func()) (before, peak uint64) {
	sample := []memory.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	read := func() uint64 {
		memory.Read(sample)
		return sample[0].Value.Uint64()
	}
	runtime.GC()
	runtime.GC()
	before = read()
	peak = before
	done, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		for {
			select {
			case <-done:
				return
			case <-time.After(500 * time.Microsecond):
				peak = max(peak, read())
			}
		}
	}()
	work()
	close(done)
	<-sampled
	return before, peak
}

// fill repeats a unit between two ends until there are about n bytes.
func fill(n int, head, unit, tail string) string {
	return head + strings.Repeat(unit, (n-len(head)-len(tail))/len(unit)) + tail
}

// hostile are bodies that cost many times their size where nobody takes care.
var hostile = []struct {
	name, path, head, unit, tail string
	status                       int
}{
	{"one long word", "/v1/completions", `{"prompt":"`, "a", `"}`, 400},
	{"words", "/v1/completions", `{"prompt":"`, "one two ", `"}`, 400},
	{"punctuation", "/v1/completions", `{"prompt":"`, "a!b?", `"}`, 400},
	{"token ids", "/v1/completions", `{"prompt":[1`, ",1", `]}`, 400},
	{"prompts", "/v1/completions", `{"prompt":["a"`, `,"a"`, `]}`, 400},
	{"escapes", "/v1/completions", `{"prompt":"`, `\u0041`, `"}`, 400},
	{"a long message", "/v1/chat/completions", `{"messages":[{"role":"user","content":"`, "one two ", `"}]}`, 400},
	{"empty messages", "/v1/chat/completions", `{"messages":[{}`, ",{}", `]}`, 400},
	{"parts", "/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"text","text":"a"}`,
		`,{"type":"text","text":"a"}`, `]}]}`, 400},
	{"tools", "/v1/chat/completions", `{"messages":[{"role":"user","content":"a"}],"tools":[{}`, ",{}", `]}`, 400},
	{"arguments", "/v1/chat/completions", `{"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\":[1`,
		",1", `]}"}}]}]}`, 400},
	{"variables", "/v1/chat/completions", `{"messages":[{"role":"user","content":"a"}],"chat_template_kwargs":{"":0`,
		`,"%d":1`, `}}`, 400},
	{"unknown fields", "/v1/chat/completions", `{"messages":[{"role":"user","content":"a"}]`, `,"%d":1`, `}`, 400},
	{"biases", "/v1/completions", `{"prompt":"a","logit_bias":[[1,1]`, ",[1,1]", `]}`, 400},
	{"stops", "/v1/completions", `{"prompt":"a","stop":["a"`, `,"a"`, `]}`, 400},
	{"nothing but space", "/v1/completions", `{"prompt":"a","max_tokens":1`, " ", `}`, 200},
}

// hostileText is a hostile body of some size. Its keys all differ.
func hostileText(head, unit, tail string, n int) string {
	if !strings.Contains(unit, "%d") {
		return fill(n, head, unit, tail)
	}
	var all strings.Builder
	all.WriteString(head)
	for i := 0; all.Len() < n-len(tail); i++ {
		fmt.Fprintf(&all, unit, i)
	}
	return all.String() + tail
}

// TestCost: whatever a body holds, it costs at most 8 times its size, and nothing of it stays.
func TestCost(t *testing.T) {
	const size = 15 << 20
	r := start(t, Options{}, nil)
	ask := func(path, body, want string) {
		require.Eventually(t, func() bool { return r.intake.Used() == 0 }, patient, time.Millisecond) // the one before rests
		conn := r.dial(t, path, body)
		answer, err := io.ReadAll(io.LimitReader(conn, int64(len("HTTP/1.1 400"))))
		require.NoError(t, err)
		if want != "" {
			require.Equal(t, want, string(answer))
		}
		conn.Close()
	}
	for _, h := range hostile { // what is made once
		ask(h.path, hostileText(h.head, h.unit, h.tail, 100<<10), "")
	}
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			body := hostileText(h.head, h.unit, h.tail, size)
			began := time.Now()
			before, peak := heap(func() { ask(h.path, body, fmt.Sprintf("HTTP/1.1 %d", h.status)) })
			cost := float64(peak-before) / float64(len(body))
			t.Logf("%.1f times its size, %v", cost, time.Since(began).Round(time.Millisecond))
			require.Less(t, cost, 8.0)
			require.Eventually(t, func() bool { // the answer was read before its handler forgot the body
				after, _ := heap(func() {})
				return int64(after)-int64(before) < 2<<20
			}, patient, 10*time.Millisecond, "what stays")
		})
	}
}

// TestCrowdOfLargeBodies: together they cost no more than what is set apart for them, and who asks for little meanwhile
// is answered.
func TestCrowdOfLargeBodies(t *testing.T) {
	const clients = 12
	r := start(t, Options{}, nil)
	h := hostile[6]
	body := hostileText(h.head, h.unit, h.tail, 15<<20)
	before, peak := heap(func() {
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				answer, err := r.http.Post(r.url+h.path, "application/json", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				defer answer.Body.Close()
				if answer.StatusCode != http.StatusBadRequest && answer.StatusCode != http.StatusServiceUnavailable {
					t.Error(answer.Status)
				}
			})
		}
		for range 20 {
			answer, err := r.http.Post(r.url+"/v1/completions", "", strings.NewReader(`{"prompt":"one","max_tokens":2}`))
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, answer.StatusCode)
			answer.Body.Close()
		}
		all.Wait()
	})
	t.Logf("%d MiB", (peak-before)>>20)
	require.Less(t, peak-before, uint64(2*intake))
	require.Eventually(t, func() bool { return r.intake.Used() == 0 }, patient, time.Millisecond)
}

// TestClaimsCostNothing: a body that is announced and not sent takes no memory. The collector counts what nobody has
// written to as well, and would let as much garbage lie.
func TestClaimsCostNothing(t *testing.T) {
	const clients, size = 80, 15 << 20
	r := start(t, Options{}, nil)
	var conns []net.Conn
	before, peak := heap(func() {
		for range clients {
			conn, err := net.Dial("tcp", r.addr)
			require.NoError(t, err)
			conns = append(conns, conn)
			_, err = fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n{", size)
			require.NoError(t, err)
		}
		require.Eventually(t, func() bool { return r.intake.Used() >= clients*(256<<10) }, patient, time.Millisecond)
	})
	for _, conn := range conns {
		conn.Close()
	}
	t.Logf("%d MiB", (peak-before)>>20)
	require.Less(t, peak-before, uint64(64<<20))
	require.Eventually(t, func() bool { return r.intake.Used() == 0 }, patient, time.Millisecond)
}
