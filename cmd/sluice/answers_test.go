//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// streamed is a client that reads one streamed answer, over as many connections as it takes.
type streamed struct {
	path, body string
	id         string   // of its request
	last       string   // Last-Event-ID for the next connection; "": none
	events     []string // that came, each once
	whole      bool
	by         string // the member of a cluster that answers; "": who was asked
}

// streamedAnswers are requests of every dialect that streams, and how each is asked. Two have several choices.
func streamedAnswers() (all []*streamed) {
	const said = `"messages":[{"role":"user","content":"Tell me of the sea, at length."}]`
	const drawn = `"stream":true,"temperature":1.1,"seed":7`
	for i, of := range []struct{ path, body string }{
		{"/v1/chat/completions", `{` + said + `,` + drawn + `,"max_tokens":70,"stream_options":{"include_usage":true}}`},
		{"/v1/chat/completions", `{` + said + `,` + drawn + `,"max_tokens":40,"n":3,"logprobs":true,"top_logprobs":2}`},
		{"/v1/completions", `{"prompt":["One","Two"],` + drawn + `,"max_tokens":50,"stop":["zzz"]}`},
		{"/v1/responses", `{"input":"Tell me of the sea.",` + drawn + `,"max_output_tokens":60}`},
		{"/v1/messages", `{` + said + `,"model":"m","stream":true,"max_tokens":60,"temperature":0}`},
		{"/api/chat", `{` + said + `,"model":"Sluice-Mini-Dense","options":{"seed":3,"num_predict":60,"mirostat":2}}`},
		{"/completion", `{"prompt":"The sea",` + drawn + `,"n_predict":80,"mirostat":2}`},
	} {
		all = append(all, &streamed{path: of.path, body: of.body, id: fmt.Sprintf("stream-%d", i)})
	}
	return all
}

// read reads from one connection until the answer is whole, or the connection ends. came is called for each event.
func (s *streamed) read(url, key string, came func()) error {
	r, err := http.NewRequest(http.MethodPost, url+s.path, strings.NewReader(s.body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("X-Request-Id", s.id)
	if s.last != "" {
		r.Header.Set("Last-Event-ID", s.last)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		return fmt.Errorf("%s: %d %s", s.path, answer.StatusCode, text)
	}
	s.id, s.by = answer.Header.Get("X-Request-Id"), answer.Header.Get("X-Sluice-Member")
	lines := strings.HasPrefix(answer.Header.Get("Content-Type"), "application/x-ndjson")
	in, event, id := bufio.NewReader(answer.Body), "", ""
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF && line == "" {
			s.whole = true
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case lines:
			event, id = line, s.id+"."+strconv.Itoa(len(s.events))
		case line != "\n":
			if now, ok := strings.CutPrefix(line, "id: "); ok {
				id = strings.TrimSpace(now)
			}
			if event += line; !strings.HasPrefix(event, ":") {
				continue
			}
			event = "" // a comment; the empty line behind it is skipped below
			continue
		case event == "":
			continue
		}
		if strings.Contains(event, `"error":{`) || strings.Contains(event, `{"type":"error"`) {
			return fmt.Errorf("%s: %s", s.path, event)
		}
		s.events, s.last, event = append(s.events, event), id, ""
		came()
	}
}

// clocks are what is measured in an answer, and so differs between any two.
var clocks = regexp.MustCompile(`"(created|created_at|\w+_duration|\w+_ms|\w+_per_second|cached_tokens|cache_read_input_tokens|input_tokens|` +
	`cache_n|prompt_n|draft_n|draft_n_accepted)":("[^"]*"|[-0-9.e+]+)`)

// several is the id line of an answer with several choices.
var several = regexp.MustCompile(`(?m)^id: .*\.\d+-.*\n`)

// index is which choice an event is of.
var index = regexp.MustCompile(`"index":(\d+)`)

// guesses are what an answer says of guessed tokens, which depend on how busy the machine is.
var guesses = regexp.MustCompile(`,"(draft_n|draft_n_accepted|accepted_prediction_tokens|rejected_prediction_tokens)":\d+`)

// timeless joins the events of each choice, without what differs between any two answers.
func timeless(events []string) string {
	if several.MatchString(events[0]) {
		events = slices.Clone(events)
		for i := range events {
			events[i] = several.ReplaceAllString(events[i], "")
		}
		slices.SortStableFunc(events, func(a, b string) int {
			return strings.Compare(index.FindString(a), index.FindString(b))
		})
	}
	return clocks.ReplaceAllString(guesses.ReplaceAllString(strings.Join(events, ""), ""), `"$1":0`)
}

// readAll reads all answers at once, and counts events. Connections that end are made again, to the server that is
// there.
func readAll(t *testing.T, all []*streamed, events *atomic.Int64, here func() string) {
	var clients sync.WaitGroup
	for _, s := range all {
		clients.Go(func() {
			if err := readPatiently(s, events, here); err != nil {
				t.Errorf("%s: %v", s.path, err)
			}
		})
	}
	clients.Wait()
}

// restored sends a request to /v1/responses, or below it.
func restored(t *testing.T, method, url, path, body string) (status int, text string) {
	q, err := http.NewRequest(method, url+"/v1/responses"+path, strings.NewReader(body))
	require.NoError(t, err)
	q.Header.Set("Authorization", "Bearer k")
	got, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	defer got.Body.Close()
	all, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	return got.StatusCode, string(all)
}

// Streams of every dialect go on after the server was killed, again and again: their clients come back with the id of
// the last event that they have, and get each event once, as if nothing had happened.
func TestKilledServerGoesOnWithAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts five servers")
	}
	whole := streamedAnswers()
	var events atomic.Int64
	url, server := startKept(t, "--state", t.TempDir())
	readAll(t, whole, &events, func() string { return url })
	kill(server, syscall.SIGKILL)
	total := events.Load()
	require.Greater(t, total, int64(200))

	state := t.TempDir()
	cut := streamedAnswers()
	var now atomic.Pointer[string]
	start := func() {
		url, c := startKept(t, "--state", state)
		now.Store(&url)
		server = c
	}
	start()
	status, background := restored(t, http.MethodPost, *now.Load(), "", `{"input":"The sea","background":true,"max_output_tokens":300}`)
	require.Equal(t, http.StatusOK, status, background)
	events.Store(0)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		readAll(t, cut, &events, func() string { return *now.Load() })
	}()
	for part := range int64(3) {
		require.Eventually(t, func() bool { return events.Load() >= (part+1)*total/5 }, patient, time.Millisecond)
		kill(server, syscall.SIGKILL)
		start()
	}
	<-ended
	for i := range whole {
		require.True(t, cut[i].whole, whole[i].path)
		require.Equal(t, timeless(whole[i].events), timeless(cut[i].events), whole[i].path)
		if i == 1 || i == 2 { // their choices come in any order
			continue
		}
		again := &streamed{path: cut[i].path, body: "{}", last: cut[i].id + ".0"}
		require.NoError(t, again.read(*now.Load(), "k", func() {}))
		require.Equal(t, timeless(cut[i].events[1:]), timeless(again.events))
		again = &streamed{path: cut[i].path, body: "{}", last: cut[i].id + ".0"}
		require.ErrorContains(t, again.read(*now.Load(), "other", func() {}), "404", "the answer is another key's")
	}
	id := "/" + regexp.MustCompile(`resp_\w+`).FindString(background)
	require.Eventually(t, func() bool {
		_, background = restored(t, http.MethodGet, *now.Load(), id, "")
		return strings.Contains(background, `"output_text"`)
	}, patient, 10*time.Millisecond, "it went on for nobody")
	_, streamedAgain := restored(t, http.MethodGet, *now.Load(), id+"?stream=true", "")
	require.Contains(t, streamedAgain, background)
	require.Eventually(t, func() bool {
		files, err := filepath.Glob(filepath.Join(state, "answers", "*", "*.open"))
		return err == nil && len(files) == 0
	}, patient, 10*time.Millisecond)
}
