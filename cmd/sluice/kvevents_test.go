package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

// router knows of a server what a router such as llm-d's reads: events over ZeroMQ and MessagePack, both by libraries
// of others, and metrics.
type router struct {
	t       *testing.T
	blocks  map[uint64]map[string]bool // media that a block lies in, by its hash
	chains  map[string]uint64          // the hash of a text's last block, by its tokens
	texts   map[uint64]string          // the other way round
	last    uint64                     // number of the last batch; 0: none was seen
	cleared int
}

// follow takes a batch, and wants its number to be the next one.
func (r *router) follow(number uint64, payload []byte) {
	if r.last > 0 {
		require.Equal(r.t, r.last+1, number)
	}
	r.last = number
	var batch []any
	require.NoError(r.t, msgpack.Unmarshal(payload, &batch))
	require.Len(r.t, batch, 2)
	require.WithinDuration(r.t, time.Now(), time.UnixMilli(int64(batch[0].(float64)*1000)), time.Hour)
	for _, e := range batch[1].([]any) {
		switch e := e.([]any); e[0] {
		case "AllBlocksCleared":
			r.blocks, r.chains, r.texts = map[uint64]map[string]bool{}, map[string]uint64{}, map[uint64]string{}
			r.cleared++
		case "BlockRemoved":
			for _, hash := range e[1].([]any) {
				require.True(r.t, r.blocks[hash.(uint64)][e[2].(string)])
				delete(r.blocks[hash.(uint64)], e[2].(string))
			}
		default:
			r.stored(e)
		}
	}
}

// stored takes blocks, each of which goes on from the one before.
func (r *router) stored(e []any) {
	require.Equal(r.t, "BlockStored", e[0])
	hashes, tokens := e[1].([]any), e[3].([]any)
	size := int(e[4].(int8))
	require.Len(r.t, tokens, size*len(hashes))
	text := ""
	if e[2] != nil {
		var known bool
		text, known = r.texts[e[2].(uint64)]
		require.True(r.t, known, "what it goes on from is known")
	}
	for i, h := range hashes {
		hash := h.(uint64)
		text += fmt.Sprint(tokens[i*size : (i+1)*size])
		r.chains[text], r.texts[hash] = hash, text
		if r.blocks[hash] == nil {
			r.blocks[hash] = map[string]bool{}
		}
		r.blocks[hash][e[6].(string)] = true
	}
}

// has counts the blocks of a prompt that the server has, and says what the last one of them lies in.
func (r *router) has(tokens []int) (blocks int, media map[string]bool) {
	text := ""
	for ; len(tokens) >= 64; tokens = tokens[64:] {
		text += fmt.Sprint(tokens[:64])
		at, known := r.chains[text]
		if !known || len(r.blocks[at]) == 0 {
			break
		}
		blocks, media = blocks+1, r.blocks[at]
	}
	return blocks, media
}

// catchUp asks for all that was missed, until a batch of a number is there.
func (r *router) catchUp(at string) {
	ask := zmq4.NewDealer(r.t.Context())
	defer ask.Close()
	require.NoError(r.t, ask.Dial("tcp://"+at))
	require.NoError(r.t, ask.Send(zmq4.NewMsgFrom(nil, binary.BigEndian.AppendUint64(nil, r.last+1))))
	for first := true; ; first = false {
		m, err := ask.Recv()
		require.NoError(r.t, err)
		require.Len(r.t, m.Frames, 3)
		number := binary.BigEndian.Uint64(m.Frames[1])
		if len(m.Frames[2]) == 0 {
			require.Equal(r.t, uint64(math.MaxUint64), number)
			return
		}
		if first && number != r.last+1 { // it began anew meanwhile, or forgot the oldest ones
			require.Greater(r.t, number, r.last)
			r.last = 0
		}
		r.follow(number, m.Frames[2])
	}
}

// learn catches up until all of a prompt is known that can be found again, and returns the media of its last block.
func (r *router) learn(at string, tokens []int) map[string]bool {
	r.t.Helper()
	for until := time.Now().Add(patient); ; time.Sleep(10 * time.Millisecond) {
		r.catchUp(at)
		blocks, media := r.has(tokens)
		if blocks >= (len(tokens)-1)/64 {
			return media
		}
		require.True(r.t, time.Now().Before(until), "%d blocks are known", blocks)
	}
}

// TestRouterFollows: who reads events and metrics as routers in front of vLLM do knows which prefixes are cached, and
// knows it again after the server was started anew, from what its disk has kept.
func TestRouterFollows(t *testing.T) {
	r := &router{t: t}
	state := filepath.Join(t.TempDir(), "state")
	flags := []string{"--kv-events", "127.0.0.1:0", "--kv-events-replay", "127.0.0.1:0", "--kv-events-topic", "kv@pod-1@m",
		"--name", "m", "--metrics-compat", "vllm", "--ctx", "2048", "--state", state, "--device", "cpu"}
	ask := func(s *serving, prompt string) {
		t.Helper()
		body := fmt.Sprintf(`{"max_tokens": 2, "temperature": 0, "prompt": %q}`, prompt)
		a, err := http.Post(s.url+"/v1/completions", "application/json", strings.NewReader(body))
		require.NoError(t, err)
		defer a.Body.Close()
		said, err := io.ReadAll(a.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.StatusCode, "%s", said)
	}
	addresses := func(s *serving) (events, replay string) {
		t.Helper()
		at := regexp.MustCompile(`KV events of topic kv@pod-1@m, at (\S+), replays at (\S+)\n`).FindStringSubmatch(s.stderr.String())
		require.NotNil(t, at, "%s", s.stderr)
		return at[1], at[2]
	}
	prompt := strings.Repeat("What is the capital of France? ", 30)
	first := launch(t, flags...)
	tokens := first.tokens(t, prompt)
	require.Greater(t, len(tokens), 3*64)

	events, replay := addresses(first)
	sub := zmq4.NewSub(t.Context())
	t.Cleanup(func() { _ = sub.Close() })
	require.NoError(t, sub.Dial("tcp://"+events))
	require.NoError(t, sub.SetOption(zmq4.OptionSubscribe, "kv@"))
	ask(first, prompt)
	media := r.learn(replay, tokens)
	require.Equal(t, map[string]bool{"GPU": true}, media, "as vLLM calls a device's memory")
	require.Equal(t, 1, r.cleared)
	blocks, _ := r.has(first.tokens(t, "Another "+prompt))
	require.Zero(t, blocks)

	for i := 0; ; i++ { // its subscription may have been on its way
		ask(first, fmt.Sprintf("%d. %s", i, prompt))
		got := make(chan zmq4.Msg, 1)
		go func() {
			if m, err := sub.Recv(); err == nil {
				got <- m
			}
		}()
		select {
		case m := <-got:
			require.Equal(t, "kv@pod-1@m", string(m.Frames[0]))
			require.Len(t, m.Frames, 3)
		case <-time.After(100 * time.Millisecond):
			require.Less(t, i, 100)
			continue
		}
		break
	}
	page := first.metrics(t)
	for _, want := range []string{`vllm:cache_config_info{block_size="64",`, `vllm:num_requests_running{engine="0",model_name="m"} 0`,
		`vllm:num_requests_waiting{engine="0",model_name="m"} 0`, `vllm:kv_cache_usage_perc{engine="0",model_name="m"} `,
		`vllm:prefix_cache_queries_total{engine="0",model_name="m"} `, `vllm:prefix_cache_hits_total{engine="0",model_name="m"} `,
		`vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m",le="`} {
		require.Contains(t, page, "\n"+want)
	}
	first.ctrlC()
	require.Equal(t, exitDone, <-first.code)

	second := launch(t, flags...)
	_, replay = addresses(second)
	media = r.learn(replay, tokens) // its files are read while it serves
	require.Equal(t, 2, r.cleared)
	require.Equal(t, map[string]bool{"STORAGE": true}, media)
	ask(second, prompt)
	r.catchUp(replay)
	_, media = r.has(tokens)
	require.Equal(t, map[string]bool{"GPU": true}, media)
	require.Regexp(t, `\nvllm:prefix_cache_hits_total\{engine="0",model_name="m"\} [1-9]`, second.metrics(t))
}

// tokens are those of a text.
func (s *serving) tokens(t *testing.T, text string) (all []int) {
	t.Helper()
	r, err := http.Post(s.url+"/tokenize", "application/json", strings.NewReader(fmt.Sprintf(`{"content": %q, "add_special": true}`, text)))
	require.NoError(t, err)
	defer r.Body.Close()
	var got struct{ Tokens []int }
	require.NoError(t, json.NewDecoder(r.Body).Decode(&got))
	return got.Tokens
}

// metrics is the page that monitors read.
func (s *serving) metrics(t *testing.T) string {
	t.Helper()
	r, err := http.Get(s.url + "/metrics")
	require.NoError(t, err)
	defer r.Body.Close()
	page, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(page)
}

// TestEventsRefused: what would tell nobody anything is said before anything is loaded.
func TestEventsRefused(t *testing.T) {
	for flags, want := range map[string]string{
		"--kv-events-topic a":                       "publish them with --kv-events ENDPOINT",
		"--kv-events-replay :1":                     "publish them with --kv-events ENDPOINT",
		"--kv-events 5557":                          `--kv-events: "5557" is no endpoint: want tcp://*:5557`,
		"--kv-events :0 --kv-events-replay ipc://a": `--kv-events-replay: "ipc://a" is no endpoint`,
		"--kv-events :0 --api-key k":                "those of each key are apart: share them with --share-prefix",
		"--kv-events :0 --models .":                 "--kv-events is of servers of one model",
		"--kv-events :0 -m a=x.gguf -m b=x.gguf":    "--kv-events is of servers of one model",
	} {
		o := sluice("", append([]string{"serve", "--addr", "127.0.0.1:0"}, strings.Fields(flags)...)...)
		require.Equal(t, exitUsage, o.code, "%s: %s", flags, o.stderr)
		require.Contains(t, o.stderr, want, flags)
	}
}
