package hub

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/storage/hub/hubtest"
)

// A connection on which nothing comes is given up, and another one tried.
func TestStalledServer(t *testing.T) {
	h, s, c := fixture(t)
	var stalled atomic.Int64
	h.Stall = func() bool { return stalled.Add(1) <= 3 }
	c.patience = 500 * time.Millisecond
	_, err := c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF"))
	require.NoError(t, err)
	h.Change(func(s *hubtest.Settings) { s.Stall = func() bool { return true } })
	c.patience = 50 * time.Millisecond // of which ten are for a whole answer, on a busy machine too
	_, err = c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF:Q8_0"))
	require.ErrorContains(t, err, "nothing has come for 50ms")
}

// TestSilentHub: a hub that begins its description of a model and says no more is given up, as one that never answers
// and one that trickles are.
func TestSilentHub(t *testing.T) {
	for how, serve := range map[string]func(http.ResponseWriter, *http.Request){
		"nothing": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"some": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"siblings": [`)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"a trickle": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				fmt.Fprint(w, " ")
				w.(http.Flusher).Flush()
				time.Sleep(time.Millisecond)
			}
		},
	} {
		hub := httptest.NewServer(http.HandlerFunc(serve))
		_, s, c := fixture(t)
		c.Endpoint, c.patience = hub.URL, 20*time.Millisecond
		c.wait = func(context.Context, time.Duration) error { return nil }
		_, err := c.Pull(context.Background(), s, named(t, "a/b"))
		hub.Close()
		if how == "a trickle" { // which a busy machine may stop for a while
			require.Regexp(t, "the answer is not there after 200ms|nothing has come for 20ms", err)
			continue
		}
		require.ErrorContains(t, err, "nothing has come for 20ms", how)
	}
}

// A hub that is busy is asked again, as late as it says; one that stays busy is given up.
func TestBusyHub(t *testing.T) {
	h, s, c := fixture(t)
	var waited []time.Duration
	c.wait = func(_ context.Context, d time.Duration) error {
		waited = append(waited, d)
		return nil
	}
	left := 3
	h.Fault = func(*http.Request) int {
		if left--; left >= 0 {
			return []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable}[left]
		}
		return 0
	}
	var told []Wait
	c.Waits = func(w Wait) { told = append(told, w) }
	_, err := c.Pull(context.Background(), s, named(t, "small:1b"))
	require.NoError(t, err)
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, waited)
	host := strings.TrimPrefix(h.URL, "http://")
	require.Equal(t, []Wait{{Host: host}, {host, "answers 503 Service Unavailable", time.Second, 2, tries},
		{host, "answers 502 Bad Gateway", 2 * time.Second, 3, tries},
		{host, "answers 429 Too Many Requests", 4 * time.Second, 4, tries}}, told)
	c.Waits = nil
	h.Change(func(s *hubtest.Settings) {
		s.Fault = func(*http.Request) int { return http.StatusServiceUnavailable }
	})
	asked := h.Asked.Load()
	_, err = c.Pull(context.Background(), s, named(t, "small:1b"))
	require.ErrorContains(t, err, "answers 503 Service Unavailable: told to fail")
	require.EqualValues(t, tries, h.Asked.Load()-asked)
	h.Change(func(s *hubtest.Settings) { s.Fault = func(*http.Request) int { return http.StatusNotImplemented } })
	asked = h.Asked.Load()
	_, err = c.Pull(context.Background(), s, named(t, "small:1b"))
	require.ErrorContains(t, err, "answers 501 Not Implemented: told to fail")
	require.EqualValues(t, 1, h.Asked.Load()-asked, "a hub that cannot do it is not asked again")

	c.Endpoint = "http://127.0.0.1:1"
	_, err = c.Pull(context.Background(), s, named(t, "small:1b"))
	require.ErrorContains(t, err, "http://127.0.0.1:1/v2/library/small/manifests/1b: ")
	for _, endpoint := range []string{"hub", "ftp://hub", "https://", "https://user@hub", "https://hub?x=y", ":"} {
		c.Endpoint = endpoint
		_, err = c.Pull(context.Background(), s, named(t, "small:1b"))
		require.ErrorContains(t, err, "is no address of a hub")
	}
}
