package server

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// patient is how long a test waits for what must come, and a browser may take, on a machine that does much else.
const patient = time.Minute

// sleeper is fasthttp's cleaner of idle workers. It wakes up every half second and ends when its server has: later
// than goleak waits.
const sleeper = "github.com/valyala/fasthttp.(*workerPool).Start.func2"

// calendar is what keeps fasthttp's date: one goroutine of the process, which never ends.
const calendar = "github.com/valyala/fasthttp.updateServerDate.func1"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		serveChild()
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(sleeper), goleak.IgnoreAnyFunction(calendar))
}

// running is a server of the embedded model on a loopback port.
type running struct {
	*Server
	engine *actors.Engine
	addr   string
	url    string
	http   *http.Client
	log    *lockedBuffer
}

// lockedBuffer takes the log, so that tests can read it.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// forget drops what was written so far: errors that a test wanted.
func (b *lockedBuffer) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Buffer.Reset()
}

func start(t *testing.T, o Options, edit func(*actors.Config)) *running {
	t.Helper()
	engine := startEngine(t, edit)
	return startServer(t, engine, o, func(o Options) *Server { return New(Engines(engine), o) })
}

// startEngine runs the embedded model.
func startEngine(t *testing.T, edit func(*actors.Config)) *actors.Engine {
	t.Helper()
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	cfg := actors.Config{Model: actors.Model{File: f, Context: 4096}, Device: devicetest.New(t)}
	if edit != nil {
		edit(&cfg)
	}
	engine, err := actors.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		defer cancel()
		require.NoError(t, engine.Close(ctx))
		s := engine.Snapshot()
		require.Zero(t, s.DeadLetters)
		require.Zero(t, s.Unexpected)
	})
	return engine
}

// startServer serves on a loopback port; it ends before its engines.
func startServer(t *testing.T, engine *actors.Engine, o Options, serve func(Options) *Server) *running {
	if o.Beat == 0 {
		o.Beat = time.Hour // most tests read events, and no comments
	}
	t.Helper()
	r := &running{engine: engine, log: &lockedBuffer{}}
	o.Log = zerolog.New(r.log)
	r.Server = serve(o)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.addr, r.url = ln.Addr().String(), "http://"+ln.Addr().String()
	r.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	served := make(chan error, 1)
	go func() { served <- r.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		defer cancel()
		r.http.CloseIdleConnections()
		require.NoError(t, r.Shutdown(ctx))
		require.NoError(t, <-served)
		require.NotContains(t, r.log.String(), `"level":"error"`)
	})
	return r
}

// client is OpenAI's own.
func (r *running) client(options ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{
		option.WithBaseURL(r.url + "/v1"), option.WithAPIKey("unused"), option.WithHTTPClient(r.http), option.WithMaxRetries(0),
	}, options...)...)
}

// post returns the status and the body of the answer.
func (r *running) post(t *testing.T, path, body string) (int, string) {
	t.Helper()
	answer, err := r.http.Post(r.url+path, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	return read(t, answer)
}

func (r *running) get(t *testing.T, path string) (int, string) {
	t.Helper()
	answer, err := r.http.Get(r.url + path)
	require.NoError(t, err)
	return read(t, answer)
}

func read(t *testing.T, answer *http.Response) (int, string) {
	t.Helper()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode, string(body)
}

// open waits until so many requests are open.
func (r *running) open(t *testing.T, n int64) {
	t.Helper()
	require.Eventually(t, func() bool { return r.engine.Snapshot().Open == n }, patient, time.Millisecond,
		"want %d open requests", n)
}
