package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/supply"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/stages/model/ftype"
	"github.com/sluice-ai/sluice/stages/model/synth"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// patient is how long a test waits for what should take a moment.
const patient = 30 * time.Second

// gallery is the command while it serves a model that makes pictures, with what it makes them by.
type gallery struct {
	*Serve
	url  string
	http *http.Client
}

// exhibit has the command serve the model of a folder, beside that of the arguments, until the test ends; "": that one
// alone.
func exhibit(t testing.TB, folder string, args ...string) *gallery {
	t.Helper()
	g := &gallery{Serve: new(Serve), http: &http.Client{Transport: &http.Transport{}}}
	parser, err := kong.New(g.Serve, kong.Vars{"version": "", "kv": "f16,f32", "kvs": "", "kvv": "f16,f32"})
	require.NoError(t, err)
	if args = append(args, "--addr", "127.0.0.1:0"); folder != "" {
		args = append(args, "--image-model", "painter="+folder)
	}
	_, err = parser.Parse(args)
	require.NoError(t, err)
	e := envtest.NewEnv("")
	var stderr bytes.Buffer // read when it has ended
	ctx, cancel := context.WithCancel(context.Background())
	out, w := io.Pipe()
	e.Stdout, e.Stderr = w, &stderr
	e.Serving = func(parent context.Context) (context.Context, <-chan os.Signal, context.CancelFunc) {
		if ctx.Err() != nil { // it is told to stop once
			return parent, nil, func() {}
		}
		return ctx, nil, func() {}
	}
	ended := make(chan error, 1)
	go func() {
		err := g.Run(e)
		w.CloseWithError(errors.Join(err, io.EOF))
		ended <- err
	}()
	t.Cleanup(func() {
		g.http.CloseIdleConnections()
		cancel()
		require.NoError(t, <-ended, "%s", &stderr)
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	g.url, _, _ = strings.Cut(line, " serves ")
	return g
}

// tinyModel is a folder of a small model that makes pictures, of which a part streams in each evaluation through a
// budget that the others fit (tight).
func tinyModel(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, shape := range map[string]string{
		"transformer": "flux-schnell", "ae": "flux-ae", "clip_l": "clip-l", "t5xxl": "t5-xxl",
	} {
		p, _ := synth.FindPicture(shape, true)
		typ, _ := ftype.Find("F32")
		m, err := models.ShapedPicture(p, typ)
		require.NoError(t, err)
		if p.Vocabulary != nil {
			p.Vocabulary(m.Meta)
		}
		out, err := os.Create(filepath.Join(dir, name+".gguf"))
		require.NoError(t, err)
		values := synth.Filler{Seed: 1}
		require.NoError(t, gguf.Write(out, m.Meta, m.Tensors, func(x *gguf.Tensor, w io.Writer) error {
			return values.Write(w, m.Values[x.Name], x.Type)
		}))
		require.NoError(t, out.Close())
	}
	return dir
}

const tight = 16 << 20

// draw asks for a picture, and returns its file in base64, or the error that a client is told.
func (g *gallery) draw(ctx context.Context, stream bool) (string, error) {
	return g.ask(ctx, stream, fmt.Sprintf(
		`{"prompt": "a cat", "size": "32x32", "steps": 8, "seed": 5, "stream": %v, "partial_images": 2}`, stream))
}

// ask is draw of a request.
func (g *gallery) ask(ctx context.Context, stream bool, body string) (string, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/v1/images/generations", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r, err := g.http.Do(q)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	all, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	said := struct {
		B64JSON string `json:"b64_json"`
		Data    []struct {
			B64JSON string `json:"b64_json"`
		}
	}{}
	if stream {
		_, event, _ := bytes.Cut(all, []byte("event: image_generation.completed\ndata: "))
		all, _, _ = bytes.Cut(event, []byte("\n"))
	}
	if r.StatusCode != http.StatusOK || json.Unmarshal(all, &said) != nil {
		return "", fmt.Errorf("status %d: %s", r.StatusCode, all)
	}
	if !stream {
		return said.Data[0].B64JSON, nil
	}
	return said.B64JSON, nil
}

// supply is what brings weights, when no picture is made.
func (g *gallery) supply() *supply.Supply {
	g.painter.mu.Lock()
	defer g.painter.mu.Unlock()
	return g.painter.weights
}

// restarts is how often each actor that brings weights was restarted, by name.
func restarts(s *supply.Supply) map[string]uint64 {
	all := map[string]uint64{}
	for _, a := range s.Status() {
		if name, below := strings.CutPrefix(a.ID, "supply/"); below {
			all[name] = a.Restarts
		}
	}
	return all
}

// moved is how many bytes were brought.
func moved(s *supply.Supply) uint64 { return s.Moved().AheadBytes + s.Moved().StepBytes }

// drawn is what a client was told.
type drawn struct {
	file string
	err  error
}

// begin asks for a picture, and returns once so many bytes of weights have come for it, or it is there.
func (g *gallery) begin(ctx context.Context, s *supply.Supply, stream bool, bytes uint64) (ended chan drawn) {
	brought := moved(s)
	ended = make(chan drawn, 1)
	go func() {
		file, err := g.draw(ctx, stream)
		ended <- drawn{file, err}
	}()
	for moved(s)-brought < bytes && len(ended) == 0 {
		time.Sleep(100 * time.Microsecond)
	}
	return ended
}

// strike has a picture drawn, and an actor die once so many bytes of weights have come for it. died says whether it
// did before the picture was there.
func (g *gallery) strike(t *testing.T, s *supply.Supply, victim string, stream bool, bytes uint64) (
	got drawn, died bool) {
	t.Helper()
	before := restarts(s)[victim]
	dies := func() bool { return restarts(s)[victim] > before }
	ended := g.begin(t.Context(), s, stream, bytes)
	s.Crash(victim)
	for !died && len(ended) == 0 {
		time.Sleep(100 * time.Microsecond)
		died = dies()
	}
	require.Eventually(t, dies, patient, time.Millisecond, victim)
	return <-ended, died
}

// Law Survive, of a server's pictures: whichever actor that brings weights dies in mid-picture, and whenever, the
// picture that a client gets, whole or at the end of a stream, is the one that it gets from weights that all stay.
func TestPicturesSurvive(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("SLUICE_CHAOS_SEED"), 10, 64); err == nil {
		seed = s
	}
	dice, g := rand.New(rand.NewPCG(seed, 0)), exhibit(t, tinyModel(t))
	want, err := g.draw(t.Context(), false)
	require.NoError(t, err)
	s := g.supply()
	require.Zero(t, moved(s))
	g.painter.mu.Lock()
	g.painter.bytes = tight
	g.painter.mu.Unlock()
	got, err := g.draw(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, want, got)
	all, kinds := moved(s), restarts(s)
	require.Positive(t, all)
	for _, name := range []string{"dock", "dock/packer", "dock/prefetcher", "dock/uploader", "pool", "reader"} {
		require.Contains(t, kinds, name)
	}
	for victim := range kinds {
		for _, stream := range []bool{false, true} {
			died := false
			for tries := 0; !died; tries++ {
				require.Less(t, tries, run.MaxRestarts/2, "%s outlives its pictures, seed %d", victim, seed)
				var got drawn
				got, died = g.strike(t, s, victim, stream, 1+dice.Uint64N(all*3/4))
				require.NoError(t, got.err, "%s, seed %d", victim, seed)
				require.Equal(t, want, got.file, "%s, seed %d", victim, seed)
			}
		}
	}
	require.NoError(t, s.Err())
}

// TestPicturesFail: once an actor that brings weights keeps dying, a client is told so, and the next picture, which
// waits meanwhile, is what it would be.
func TestPicturesFail(t *testing.T) {
	g := exhibit(t, tinyModel(t), "--image-ram", strconv.Itoa(tight))
	want, err := g.draw(t.Context(), false)
	require.NoError(t, err)
	s, turns := g.supply(), g.painter.cores.Join()
	defer turns.Part()
	ended := g.begin(t.Context(), s, false, 1)
	require.NoError(t, turns.Take(t.Context())) // nothing is computed until it is given back
	for n := range uint64(run.MaxRestarts + 1) {
		s.Crash("reader")
		require.Eventually(t, func() bool { return s.Err() != nil || restarts(s)["reader"] > n }, patient, time.Millisecond)
	}
	require.Error(t, s.Err())
	turns.Give()
	require.ErrorContains(t, (<-ended).err, `status 503: {"error":{"message":"what reads the weights of the picture's model has failed`)
	got, err := g.draw(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.NotSame(t, s, g.supply())
}

// TestPicturesLeft: a picture whose client has left ends while something else has the cores: nothing more of it is
// computed, and no more weights come.
func TestPicturesLeft(t *testing.T) {
	g := exhibit(t, tinyModel(t), "--image-ram", strconv.Itoa(tight))
	want, err := g.draw(t.Context(), false)
	require.NoError(t, err)
	s := g.supply()
	for _, stream := range []bool{false, true} {
		for left := false; !left; {
			ctx, leave := context.WithCancel(t.Context())
			ended, turns := g.begin(ctx, s, stream, 1), g.painter.cores.Join()
			require.NoError(t, turns.Take(t.Context()))
			time.Sleep(50 * time.Millisecond) // by then it most likely waits for its turn
			leave()
			left = errors.Is((<-ended).err, context.Canceled) // else it was there already
			require.Eventually(t, g.painter.mu.TryLock, patient, time.Millisecond, "it waits for a turn")
			g.painter.mu.Unlock()
			turns.Give()
			turns.Part()
		}
		got, err := g.draw(t.Context(), stream)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
