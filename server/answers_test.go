package server

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/model/lora"
	"github.com/sluice-ai/sluice/storage/answerfiles"
)

// startKeeping starts a server that keeps answers in a folder.
func startKeeping(t *testing.T, path string, log io.Writer) *running {
	return start(t, keepingOptions(t, path, log), nil)
}

func keepingOptions(t *testing.T, path string, log io.Writer) Options {
	folder, err := answerfiles.OpenFolder(path, 1<<24, time.Now())
	require.NoError(t, err)
	answers := actors.KeepAnswers(folder, zerolog.New(log))
	t.Cleanup(func() { answers.Close(); folder.Close() })
	return Options{Answers: answers, APIKeys: []string{"k", "other"}}
}

// stream asks for a stream, and reads as many events of it as are wanted; -1: all. last is the header that says what is
// there already.
func (r *running) stream(t *testing.T, key, last, body string, most int) (id string, events []string, status int) {
	q, err := http.NewRequest(http.MethodPost, r.url+"/v1/completions", strings.NewReader(body))
	require.NoError(t, err)
	q.Header.Set("Authorization", "Bearer "+key)
	q.Header.Set(lastEvent, last)
	got, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(q)
	require.NoError(t, err)
	defer got.Body.Close()
	for in := bufio.NewScanner(got.Body); most != 0 && in.Scan(); {
		if line, ok := strings.CutPrefix(in.Text(), "data: "); ok {
			events = append(events, line)
			most--
		}
	}
	return got.Header.Get("X-Request-Id"), events, got.StatusCode
}

const kept = `{"prompt":"one two","stream":true,"temperature":3,"top_k":0,"top_p":1,"min_p":0,"max_tokens":60,"ignore_eos":true`

// A client that leaves stops what computes for it; one that comes back has the rest computed, by the tokens that were
// drawn and without a seed of its own. Nobody else's key finds the answer.
func TestStreamsGoOn(t *testing.T) {
	r := startKeeping(t, filepath.Join(t.TempDir(), "answers"), io.Discard)
	long := strings.Replace(kept, "60", "700", 1) // it cannot be whole before its client is seen to have left
	id, begin, _ := r.stream(t, "k", "", long+`}`, 5)
	require.Len(t, begin, 5)
	require.Eventually(t, func() bool { return r.engine.Snapshot().Open == 0 }, patient, time.Millisecond)
	require.Less(t, r.engine.Snapshot().Generated, uint64(600))
	_, _, status := r.stream(t, "other", id+".4", kept+`}`, -1)
	require.Equal(t, http.StatusNotFound, status)
	_, middle, _ := r.stream(t, "k", id+".4", `{}`, 7)
	_, end, _ := r.stream(t, "k", id+".11", `not even JSON`, -1)
	_, all, _ := r.stream(t, "k", id+".0", kept+`}`, -1)
	require.Equal(t, "[DONE]", all[len(all)-1])
	require.Equal(t, append(append(begin, middle...), end...), append(begin[:1], all...))
	key := sha256.Sum256([]byte("k"))
	p := r.options.Answers.Find("key "+hex.EncodeToString(key[:8]), id)
	require.NotNil(t, p)
	_, undisturbed, _ := r.stream(t, "k", "", fmt.Sprintf(`%s,"seed":%d}`, long, p.Begun.Seeds[0]), -1)
	text := regexp.MustCompile(`"text":"(\\.|[^"\\])*"`)
	said := func(events []string) []string { return text.FindAllString(strings.Join(events, ""), -1) }
	require.Equal(t, said(undisturbed[1:]), said(all))
	for _, odd := range []string{"x", ".1", id, id + ".", id + ".-1", id + ".1-2", id + ".99999999999"} {
		_, _, status := r.stream(t, "k", odd, kept+`}`, -1)
		require.Contains(t, []int{http.StatusBadRequest, http.StatusNotFound}, status, odd)
	}
	_, _, status = r.stream(t, "k", "nobody.3", kept+`}`, -1)
	require.Equal(t, http.StatusNotFound, status)
}

// What is left of an answer that failed for good is computed for a client that asks for it, and no longer kept.
func TestFailedAnswersGoOnUnkept(t *testing.T) {
	r := startKeeping(t, filepath.Join(t.TempDir(), "answers"), io.Discard)
	id, all, _ := r.stream(t, "k", "", kept+`}`, -1)
	key := sha256.Sum256([]byte("k"))
	owner := "key " + hex.EncodeToString(key[:8])
	p := r.options.Answers.Find(owner, id)
	require.NotNil(t, p)
	require.True(t, r.options.Answers.Remove(owner, id))
	x := r.options.Answers.Begin(&p.Asked)
	x.Begun(p.Begun)
	x.Read(&actors.AnswerCounts{Prompt: p.Read[0].Prompt})
	for i := range 5 {
		x.Token(&p.Tokens[i])
	}
	x.Closed("it failed")
	x.End(actors.AnswerSaved)
	_, rest, status := r.stream(t, "k", id+".3", `{}`, -1)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, len(all)-4, len(rest))
	require.Equal(t, "[DONE]", rest[len(rest)-1])
	require.Len(t, r.options.Answers.Find(owner, id).Tokens, 5)
}

// An adapter that was replaced under its name would make other tokens: the answer does not go on.
func TestStreamsOfOtherAdapters(t *testing.T) {
	engine := startEngine(t, func(c *actors.Config) { c.Adapted = true })
	fine := func(seed uint64) actors.Adapter {
		return actors.Adapter{Name: "fine", Open: func(p *ir.Program) (*lora.Loaded, error) {
			a := backendtest.RandomAdapter(rand.New(rand.NewPCG(seed, 2)), p, 4, 1)
			return &lora.Loaded{Adapter: *a, Bytes: 1, Digest: [32]byte{byte(seed)}}, nil
		}}
	}
	require.NoError(t, engine.AddAdapter(fine(1), true))
	o := keepingOptions(t, filepath.Join(t.TempDir(), "answers"), io.Discard)
	r := startServer(t, engine, o, func(o Options) *Server { return New(Engines(engine), o) })
	long := `{"model":"fine",` + strings.Replace(kept, "60", "700", 1)[1:] + `}`
	id, begin, _ := r.stream(t, "k", "", long, 3)
	require.Len(t, begin, 3)
	require.Eventually(t, func() bool { return engine.Snapshot().Open == 0 }, patient, time.Millisecond)
	_, more, status := r.stream(t, "k", id+".3", "{}", 2)
	require.Equal(t, http.StatusOK, status)
	require.Len(t, more, 2)
	require.Eventually(t, func() bool { return engine.Snapshot().Open == 0 }, patient, time.Millisecond)
	require.True(t, engine.DropAdapter("fine"))
	require.NoError(t, engine.AddAdapter(fine(3), true))
	_, _, status = r.stream(t, "k", id+".5", "{}", 2)
	require.Equal(t, http.StatusBadRequest, status)
}

// Several choices are each counted for itself.
func TestStreamsOfChoicesGoOn(t *testing.T) {
	r := startKeeping(t, filepath.Join(t.TempDir(), "answers"), io.Discard)
	id, all, _ := r.stream(t, "k", "", kept+`,"n":3,"seed":5}`, -1)
	var some, rest []string
	for _, line := range all[:len(all)-1] {
		if strings.Contains(line, `"index":1`) {
			some = append(some, line)
		}
	}
	_, again, _ := r.stream(t, "k", id+".9999-4-9999-0", "{}", -1)
	for _, line := range again[:len(again)-1] {
		require.Contains(t, line, `"index":1`)
		rest = append(rest, line)
	}
	require.Equal(t, some[4:], rest)
}

// A disk that fails costs nothing but what it was to keep: answers are whole, and one line of the log says so.
func TestAnswersWithoutDisk(t *testing.T) {
	path, log := filepath.Join(t.TempDir(), "answers"), &lockedBuffer{}
	r := startKeeping(t, path, log)
	_, all, _ := r.stream(t, "k", "", kept+`,"seed":1}`, -1)
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	for range 2 {
		id, without, status := r.stream(t, "k", "", kept+`,"seed":1}`, -1)
		require.Equal(t, http.StatusOK, status)
		require.Len(t, without, len(all))
		_, _, status = r.stream(t, "k", id+".3", kept+`,"seed":1}`, -1)
		require.Equal(t, http.StatusNotFound, status)
	}
	require.Equal(t, 1, strings.Count(log.String(), "answers cannot be kept on disk"), log.String())
	require.NoError(t, os.Remove(path))
	r.stream(t, "k", "", kept+`,"seed":1}`, -1)
	require.Contains(t, log.String(), "answers are kept on disk again")
}

// Without a folder there are no ids of events, and the header says nothing.
func TestNothingIsKeptUnasked(t *testing.T) {
	r := start(t, Options{}, nil)
	got, err := http.Post(r.url+"/v1/completions", "application/json", strings.NewReader(kept+`}`))
	require.NoError(t, err)
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	require.NotContains(t, string(body), "id: ")
	_, all, status := r.stream(t, "", "x.1", kept+`}`, -1)
	require.Equal(t, http.StatusOK, status)
	require.NotEmpty(t, all)
}

// respond sends a request to /v1/responses, or below it.
func (r *running) respond(t *testing.T, method, key, path, body string) (status int, text string) {
	q, err := http.NewRequest(method, r.url+"/v1/responses"+path, strings.NewReader(body))
	require.NoError(t, err)
	q.Header.Set("Authorization", "Bearer "+key)
	got, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	defer got.Body.Close()
	all, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	return got.StatusCode, string(all)
}

// A response in the background is computed for nobody, can be asked for and read as a stream from any event on, goes on
// in the next server, and is forgotten when it is deleted. Other keys do not find it.
func TestResponsesInTheBackground(t *testing.T) {
	path := filepath.Join(t.TempDir(), "answers")
	r := startKeeping(t, path, io.Discard)
	status, first := r.respond(t, "POST", "k", "", askedBehind)
	require.Equal(t, http.StatusOK, status, first)
	require.Contains(t, first, `"background":true`)
	require.Contains(t, first, `"status":"in_progress"`)
	id := "/" + regexp.MustCompile(`resp_\w+`).FindString(first)
	var whole string
	require.Eventually(t, func() bool {
		status, whole = r.respond(t, "GET", "k", id, "")
		return status == http.StatusOK && !strings.Contains(whole, underway)
	}, patient, time.Millisecond)
	require.Contains(t, whole, `"output_text"`)
	_, events := r.respond(t, "GET", "k", id+"?stream=true", "")
	require.Contains(t, events, "event: response.created\n")
	require.Contains(t, events, whole, "the last event has the whole answer")
	_, rest := r.respond(t, "GET", "k", id+"?stream=true&starting_after=4", "")
	_, want, _ := strings.Cut(events, `"sequence_number":4,`)
	_, want, _ = strings.Cut(want, "\n\n")
	require.Equal(t, want, rest)
	for _, method := range []string{"GET", "DELETE"} {
		status, _ = r.respond(t, method, "other", id, "")
		require.Equal(t, http.StatusNotFound, status)
	}
	for body, want := range map[string]int{`"input":"And?","max_output_tokens":2`: 200, `"input":"a","background":true,"store":false`: 400} {
		status, text := r.respond(t, "POST", "k", "", `{"previous_response_id":"`+id[1:]+`",`+body+`}`)
		require.Equal(t, want, status, text)
	}
	status, _ = r.respond(t, "POST", "other", "", `{"previous_response_id":"`+id[1:]+`","input":"a"}`)
	require.Equal(t, http.StatusBadRequest, status)
	status, _ = r.respond(t, "DELETE", "k", id, "")
	require.Equal(t, http.StatusOK, status)
	for _, method := range []string{"GET", "DELETE"} {
		status, _ = r.respond(t, method, "k", id, "")
		require.Equal(t, http.StatusNotFound, status)
	}
	status, text := r.respond(t, "POST", "k", "", `{"input":"Hi","max_output_tokens":3}`)
	require.Equal(t, http.StatusOK, status)
	_, again := r.respond(t, "GET", "k", "/"+regexp.MustCompile(`resp_\w+`).FindString(text), "")
	require.Equal(t, text, again, "what was not streamed is stored, too")
}

// A response in the background is read as a stream from its first event on while it is computed, by one after another.
func TestResponsesAreReadWhileComputed(t *testing.T) {
	r := startKeeping(t, filepath.Join(t.TempDir(), "answers"), io.Discard)
	_, first := r.respond(t, "POST", "k", "", strings.Replace(askedBehind, "40", "700", 1))
	id := "/" + regexp.MustCompile(`resp_\w+`).FindString(first)
	for range 2 {
		var status int
		var events string
		require.Eventually(t, func() bool { // until it has begun it cannot be gone on with
			status, events = r.respond(t, "GET", "k", id+"?stream=true", "")
			return status != http.StatusServiceUnavailable
		}, patient, time.Millisecond)
		require.Equal(t, http.StatusOK, status, events)
		require.Contains(t, events, "event: response.created\n")
		require.Contains(t, events, "event: response.completed\n")
	}
}

// askedBehind asks for a response in the background.
const askedBehind = `{"input":"Tell me of the sea.","background":true,"temperature":1,"max_output_tokens":40}`

const underway = `"status":"in_progress","incomplete_details":null,"output":[],"usage":null}`
