package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/mini"
)

// patient is how long a test waits for what must come: a busy machine takes its time.
const patient = time.Minute

// sleeper is fasthttp's cleaner of idle workers. It wakes up every half second and ends when its server has: later
// than goleak waits.
const sleeper = "github.com/valyala/fasthttp.(*workerPool).Start.func2"

// calendar is what keeps fasthttp's date: one goroutine of the process, which never ends.
const calendar = "github.com/valyala/fasthttp.updateServerDate.func1"

// keyboard sends Ctrl-C to the program under test.
type keyboard struct {
	mu   sync.Mutex
	ends []context.CancelFunc
}

func (k *keyboard) interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends = append(k.ends, cancel)
	return ctx, cancel
}

func (k *keyboard) ctrlC() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, end := range k.ends {
		end()
	}
}

// serving is the program while it serves.
type serving struct {
	keyboard
	url    string
	stderr *waitedBuffer
	code   chan int
}

// waitedBuffer is a stderr that a test can wait on.
type waitedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *waitedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *waitedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func launch(t *testing.T, flags ...string) *serving {
	t.Helper()
	return launchWith(t, func(*env.Env) {}, flags...)
}

// serveWith serves in another environment.
func launchWith(t *testing.T, edit func(*env.Env), flags ...string) *serving {
	t.Helper()
	before := goleak.IgnoreCurrent()
	stdout, w := io.Pipe()
	s := &serving{stderr: &waitedBuffer{}, code: make(chan int, 1)}
	e := envtest.NewEnv("", append([]string{"serve", "--addr", "127.0.0.1:0"}, flags...)...)
	e.Stdout, e.Stderr, e.Interruptible = w, s.stderr, s.interruptible
	e.Serving = func(parent context.Context) (context.Context, <-chan os.Signal, context.CancelFunc) {
		ctx, cancel := s.interruptible(parent)
		return ctx, nil, cancel
	}
	edit(e)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.code <- run(e)
		w.Close()
	}()
	t.Cleanup(func() {
		s.ctrlC()
		<-ended
		http.DefaultClient.CloseIdleConnections()
		goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction(sleeper), goleak.IgnoreAnyFunction(calendar))
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, "%s", s.stderr)
	s.url, _, _ = strings.Cut(line, " serves ")
	require.Contains(t, line, " serves ")
	return s
}

// open sends a request, and returns when the answer begins.
func (s *serving) open(t *testing.T, body string) io.ReadCloser {
	t.Helper()
	r, err := http.Post(s.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, r.StatusCode)
	t.Cleanup(func() { r.Body.Close() })
	return r.Body
}

func (s *serving) says(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(s.stderr.String(), text) },
		patient, 5*time.Millisecond, text)
}

func TestServe(t *testing.T) {
	s := launch(t, "--name", "my model", "--parallel", "2")
	answer, err := io.ReadAll(s.open(t, `{"temperature": 0, "messages": [{"role": "user", "content": "12 + 30"}]}`))
	require.NoError(t, err)
	require.Contains(t, string(answer), `"12 + 30 = 42."`)
	require.Contains(t, string(answer), `"my model"`)
	s.ctrlC()
	require.Equal(t, exitDone, <-s.code)
	require.Equal(t, "sluice: stopping when open answers are finished; Ctrl-C again cuts them\n", s.stderr.String())
}

// TestServeFinishes: the first Ctrl-C lets an open answer go to its end.
func TestServeFinishes(t *testing.T) {
	s := launch(t)
	body := s.open(t, `{"temperature": 0, "stream": true, "ignore_eos": true, "max_tokens": 400,
		"messages": [{"role": "user", "content": "12 + 30"}]}`)
	s.ctrlC()
	s.says(t, "stopping")
	answer, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Contains(t, string(answer), `"finish_reason":"length"`)
	require.Contains(t, string(answer), "data: [DONE]")
	require.Equal(t, exitDone, <-s.code)
}

// TestServeCuts: the second one does not.
func TestServeCuts(t *testing.T) {
	s := launch(t)
	body := s.open(t, `{"temperature": 0, "stream": true, "ignore_eos": true, "max_tokens": 16000,
		"messages": [{"role": "user", "content": "12 + 30"}]}`)
	s.ctrlC()
	s.says(t, "stopping")
	s.ctrlC()
	answer, err := io.ReadAll(body)
	require.NoError(t, err, "it is told that it was cut")
	require.NotContains(t, string(answer), `"finish_reason":"length"`)
	require.Equal(t, exitInterrupted, <-s.code)
}

func TestServeKeys(t *testing.T) {
	s := launch(t, "--api-key", "one,two", "--api-key", "three")
	for key, want := range map[string]int{"one,two": 200, "three": 200, "two": 401, "": 401} {
		r, err := http.NewRequest(http.MethodGet, s.url+"/v1/models", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+key)
		a, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		a.Body.Close()
		require.Equal(t, want, a.StatusCode, key)
	}
}

// TestServeSeveral: each -m is a model, by the name that it is given or the one in its file; model chooses.
func TestServeSeveral(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mini.gguf")
	require.NoError(t, os.WriteFile(file, mini.GGUF, 0o600))
	s := launch(t, "-m", "first="+file, "-m", file, "-m", file, "--ctx", "512")
	const own = "Sluice-Mini-Dense"
	const question = `{"model": %q, "temperature": 0, "messages": [{"role": "user", "content": "12 + 30"}]}`
	for _, model := range []string{"first", own, own + "-2"} {
		answer, err := io.ReadAll(s.open(t, fmt.Sprintf(question, model)))
		require.NoError(t, err)
		require.Contains(t, string(answer), `"12 + 30 = 42."`)
		require.Contains(t, string(answer), fmt.Sprintf(`"model":%q`, model))
	}
	refused, err := http.Post(s.url+"/v1/chat/completions", "application/json",
		strings.NewReader(fmt.Sprintf(question, "another")))
	require.NoError(t, err)
	defer refused.Body.Close()
	said, err := io.ReadAll(refused.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, refused.StatusCode)
	for _, name := range []string{"first", own, own + "-2"} {
		require.Contains(t, string(said), name)
	}
	r, err := http.Get(s.url + "/v1/models")
	require.NoError(t, err)
	defer r.Body.Close()
	list, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	for _, name := range []string{"first", own, own + "-2"} {
		require.Contains(t, string(list), fmt.Sprintf(`"id":%q`, name))
	}
	s.ctrlC()
	require.Equal(t, exitDone, <-s.code)
}

// TestEmptyModel: a flag whose variable was empty is not the embedded model's.
func TestEmptyModel(t *testing.T) {
	for _, command := range []string{"run", "chat", "tokenize"} {
		o := sluice("", command, "-m", "")
		require.Equal(t, exitUsage, o.code, command)
		require.Contains(t, o.stderr, "-m is empty: want a model file", command)
	}
}

// TestServeOpen: other machines may ask without a key where that was said.
func TestServeOpen(t *testing.T) {
	for _, flags := range [][]string{{"--open"}, {"--api-key", "k"}} {
		s := launch(t, append([]string{"--addr", "0.0.0.0:0"}, flags...)...)
		s.ctrlC()
		require.Equal(t, exitDone, <-s.code)
	}
}

func TestServeRefuses(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	for _, c := range []struct {
		code  int
		says  string
		flags []string
	}{
		{exitFailed, "address already in use: choose another", []string{"--addr", ln.Addr().String()}},
		{exitUsage, `--addr is "nonsense": want HOST:PORT such as 127.0.0.1:8080, or :8080`, []string{"--addr", "nonsense"}},
		{exitFailed, "no-such-file.gguf", []string{"--addr", "127.0.0.1:0", "-m", "no-such-file.gguf"}},
		{exitUsage, "--parallel is -1: want 1 to 256", []string{"--parallel=-1"}},
		{exitUsage, "--parallel is 0: want 1 to 256", []string{"--parallel=0"}},
		{exitUsage, "--parallel is 257: want 1 to 256", []string{"--parallel", "257"}},
		{exitUsage, "--addr is empty: want HOST:PORT", []string{"--addr", ""}},
		{exitUsage, "reaches other machines, and there is no key", []string{"--addr", "0.0.0.0:0"}},
		{exitUsage, "reaches other machines, and there is no key", []string{"--addr", ":0", "--host-name", "a"}},
		{exitUsage, `--trusted-proxy is "10.0.0": want an address`, []string{"--trusted-proxy", "10.0.0"}},
		{exitUsage, "--cors * lets every web page use the models, and there is no key", []string{"--cors", "*"}},
		{exitUsage, "want an origin such as https://chat.example.org", []string{"--cors", "https://a.example/path"}},
		{exitUsage, "want an origin such as https://chat.example.org", []string{"--cors", "chat.example.org"}},
		{exitUsage, "want an origin such as https://chat.example.org", []string{"--cors", "null"}},
		{exitUsage, `--mcp is "http://a/mcp": want an origin`, []string{"--mcp", "http://a/mcp"}},
		{exitUsage, "--host-name is empty", []string{"--host-name", ""}},
		{exitUsage, "want the name alone", []string{"--host-name", "http://llm.example.org"}},
		{exitUsage, "want the name alone", []string{"--host-name", "llm.example.org:8080"}},
		{exitUsage, "--api-key is empty", []string{"--api-key", ""}},
		{exitUsage, "--api-key is empty", []string{"--api-key", "  "}},
		{exitUsage, "holds no key: want one in each line", []string{"--api-key-file", os.DevNull}},
		{exitFailed, "no-such-file: no such file", []string{"--api-key-file", "no-such-file"}},
		{exitUsage, "--name names one model, and there are 2", []string{"--name", "n", "-m", "a", "-m", "b"}},
		{exitUsage, "give the model one name", []string{"--name", "n", "-m", "o=a"}},
		{exitUsage, "names no file: want FILE or NAME=FILE", []string{"-m", ""}},
		{exitUsage, "--name names one model, and --models is a folder", []string{"--name", "n", "--models", "."}},
		{exitUsage, "--name names one model, and --stored serves all", []string{"--name", "n", "--stored"}},
		{exitUsage, `--metrics-compat is "tgi": want vllm or llamacpp`, []string{"--metrics-compat", "vllm,tgi"}},
		{exitUsage, "--tls-cert needs its private key", []string{"--tls-cert", "c.pem"}},
		{exitUsage, "--tls-key is the key of a certificate", []string{"--tls-key", "k.pem"}},
		{exitFailed, "want PEM files that belong together", []string{"--tls-cert", "no.pem", "--tls-key", os.DevNull}},
		{exitUsage, "--keep-alive is -1s: want a time", []string{"--keep-alive=-1s"}},
		{exitFailed, "want a folder with model files", []string{"--addr", "127.0.0.1:0", "--models", "no-such-folder"}},
	} {
		o := sluice("", append([]string{"serve"}, c.flags...)...)
		require.Equal(t, c.code, o.code, "%v: %s", c.flags, o.stderr)
		require.Contains(t, o.stderr, c.says)
		require.Empty(t, o.stdout)
	}
}

// One line says what a model runs with, for people or programs.
func TestSummary(t *testing.T) {
	o := sluice("", "run", "--log", "debug", "--log-format", "json", "-t", "2", "-n", "2", "--ctx", "256", "hello")
	require.Zero(t, o.code, o.stderr)
	said := map[string]map[string]any{}
	for text := range strings.Lines(o.stderr) {
		line := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(text), &line), text)
		said[fmt.Sprint(line["message"])] = line
	}
	ready := said["ready"]
	require.EqualValues(t, 256, ready["context"])
	require.EqualValues(t, 2, ready["threads"])
	require.Equal(t, "f16", ready["kv"])
	require.Equal(t, "26.2 M", ready["parameters"])
	require.Contains(t, ready["kernels"], "cpu ")
	for _, name := range []string{"model", "weights", "cache", "memory"} {
		require.NotEmpty(t, ready[name], name)
	}
	require.NotEqual(t, "0 B", ready["cache"])
	require.EqualValues(t, 2, said["answered"]["generated"])
	require.Contains(t, said, "opened")

	o = sluice("", "run", "--log", "info", "-n", "1", "hello")
	require.Regexp(t, `^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d INF ready `, o.stderr, "with its date")
}
