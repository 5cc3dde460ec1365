package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// question is a request of client i. Seeds make sampled answers repeatable.
func question(i int) string {
	countries := []string{"France", "Spain", "Italy", "Japan"}
	return fmt.Sprintf(`{"messages":[{"role":"user","content":"What is the capital of %s? %d + %d"}],"max_tokens":%d,
		"seed":%d,"temperature":1.5,"min_p":0,"stream":true,"ignore_eos":true}`, countries[i%4], i, i%7, 24+i%9, i)
}

// ask streams an answer and returns its text. It leaves after so many events, if that is not 0, and waits between
// events, if it is slow.
func (r *running) ask(ctx context.Context, body string, leave int, slow time.Duration) (string, error) {
	request, _ := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/v1/chat/completions", strings.NewReader(body))
	answer, err := r.http.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	text, done := "", false
	for n := 0; lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if n++; n == leave {
			return "", errLeft
		}
		if done = data == "[DONE]"; done {
			continue
		}
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return "", err
		}
		text += chunk.Choices[0].Delta.Content
		time.Sleep(slow)
	}
	if !done {
		return "", errors.Join(io.ErrUnexpectedEOF, lines.Err())
	}
	return text, nil
}

var errLeft = errors.New("left as planned")

// TestManyClients lets 32 clients stream at once. Some leave in the middle, some are slow, and strangers send
// rubbish. Every finished answer is the one computed alone; afterwards nothing is left of any of them.
func TestManyClients(t *testing.T) {
	const clients = 32
	r := start(t, Options{}, nil)
	alone := make([]string, clients)
	for i := range alone {
		var err error
		alone[i], err = r.ask(t.Context(), question(i), 0, 0)
		require.NoError(t, err)
		require.NotEmpty(t, alone[i])
	}
	r.open(t, 0)
	before := r.settled()
	blocks := r.engine.Snapshot().KV

	for range 2 {
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				leave, slow := 0, time.Duration(0)
				switch {
				case i%4 == 1:
					leave = 2 + i%11
				case i%8 == 2:
					slow = 5 * time.Millisecond
				}
				text, err := r.ask(t.Context(), question(i), leave, slow)
				if leave > 0 {
					require.ErrorIs(t, err, errLeft)
					return
				}
				require.NoError(t, err)
				require.Equal(t, alone[i], text, "client %d", i)
			})
		}
		for i := range 16 {
			all.Go(func() { r.rubbish(t, uint64(i)) })
		}
		all.Wait()
	}
	r.open(t, 0)
	after := r.settled()
	t.Logf("heap before %d, after %d KiB", before>>10, after>>10)
	require.Less(t, after, before+before/4+(2<<20))
	require.Eventually(t, func() bool { // of who left it comes back after the last step
		s := r.engine.Snapshot()
		return s.Running+s.Waiting == 0 && s.KV.Used == 0
	}, patient, time.Millisecond, "blocks in use")
	s := r.engine.Snapshot()
	require.Equal(t, blocks.Blocks, s.KV.Free+s.KV.Cached)
}

// settled returns the live heap.
func (r *running) settled() uint64 {
	r.http.CloseIdleConnections()
	var m runtime.MemStats
	least := ^uint64(0)
	for range 5 { // buffers in pools go with the second collection
		runtime.GC()
		runtime.ReadMemStats(&m)
		least = min(least, m.HeapAlloc)
	}
	return least
}

// rubbish sends what is no request, or only looks like one, and goes away without reading all of the answer.
func (r *running) rubbish(t *testing.T, seed uint64) {
	conn, err := net.Dial("tcp", r.addr)
	require.NoError(t, err)
	defer conn.Close()
	random := rand.New(rand.NewPCG(seed, 0))
	body := question(int(seed))
	switch seed % 4 {
	case 0:
		noise := make([]byte, 2000)
		for i := range noise {
			noise[i] = byte(random.Uint32())
		}
		conn.Write(noise)
	case 1:
		fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n%s", body)
	case 2:
		cut := body[:random.IntN(len(body))]
		fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(cut), cut)
	case 3: // two at once, and gone
		one := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		io.WriteString(conn, one+one)
	}
	conn.SetReadDeadline(time.Now().Add(time.Duration(random.IntN(50)) * time.Millisecond))
	io.ReadAll(io.LimitReader(conn, 1000))
}
