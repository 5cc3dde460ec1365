package actors

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// patient is how long a test waits for what must come. A machine that is busy with something else may take long, and
// only a test that fails waits for all of it.
const patient = time.Minute

// inPlace is what only processors do.
const inPlace = "weights are computed with where they lie in the file"

// newDevice is the device that the laws are tested on.
func newDevice(t testing.TB) backend.Device { return devicetest.New(t) }

// plain asks for the likeliest tokens, whatever they are.
func plain(tokens []int32, most int) Request {
	return Request{Tokens: tokens, MaxTokens: most, Sampling: greedy(), IgnoreEOG: true}
}

func greedy() sample.Params {
	p := sample.Defaults()
	p.Temp = 0
	return p
}

// fixturePath finds one of the reference models. The laws' own is in testdata, so that they hold on any machine.
func fixturePath(t testing.TB, name string) string {
	if name == fixture {
		return filepath.Join("testdata", name+".gguf")
	}
	if path := archtest.Specimen(t, name); path != "" {
		return path
	}
	return filepath.Join(testref.Dir(t), "fixtures", name+".gguf")
}

// startFixture runs one of the reference models.
func startFixture(t *testing.T, name string, edit func(*Config)) *Engine {
	t.Helper()
	f, err := gguf.Open(fixturePath(t, name))
	require.NoError(t, err)
	return startFile(t, f, edit)
}

func startFile(t *testing.T, f *gguf.File, edit func(*Config)) *Engine {
	t.Helper()
	log := zerolog.New(zerolog.NewTestWriter(t))
	cfg := Config{Model: Model{File: f, KV: backend.KVF32}, Device: newDevice(t), Log: log}
	if edit != nil {
		edit(&cfg)
	}
	e, err := Start(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { shut(t, e) })
	return e
}

// shut closes the engine and checks that nothing went astray while it ran.
func shut(t *testing.T, e *Engine) {
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	require.NoError(t, e.Close(ctx))
	s := e.Snapshot()
	require.Zero(t, s.DeadLetters, "dead letters")
	require.Zero(t, s.Unexpected, "messages that their receiver does not list")
	for _, a := range s.Actors {
		require.Zero(t, a.Refused, "%s refused messages", a.ID)
	}
}

type answer struct {
	tokens []int32
	text   string
	finish Finish
	usage  Usage
}

func collect(t require.TestingT, s *Stream) answer {
	a, err := drain(s)
	require.NoError(t, err)
	return a
}

func drain(s *Stream) (answer, error) {
	defer s.Close()
	var a answer
	var e Event
	for {
		err := s.Next(context.Background(), &e)
		if errors.Is(err, io.EOF) {
			a.usage = s.Usage()
			return a, nil
		}
		if err != nil {
			return a, err
		}
		if e.HasToken {
			a.tokens = append(a.tokens, e.Token)
		}
		a.text += string(e.Text)
		a.finish = e.Finish
	}
}

func TestGenerate(t *testing.T) {
	defer goleak.VerifyNone(t)
	e := startFixture(t, "llama", nil)
	s, err := e.Generate(plain([]int32{473, 347, 449, 89, 461, 160, 92, 191, 14, 114, 356, 470,
		395, 463, 188, 224}, 32))
	require.NoError(t, err)
	a := collect(t, s)
	require.Equal(t, []int32{358, 324, 491, 90, 169, 465, 282, 501, 495, 480, 328, 241, 35, 334, 409, 428, 223, 233, 173,
		176, 463, 208, 9, 320, 73, 78, 508, 236, 66, 306, 114, 466}, a.tokens)
	require.Equal(t, Length, a.finish)
	require.Equal(t, 16, a.usage.Prompt)
	shut(t, e)
}

// left waits until every request has given back its place, which it does after its stream has ended, and what it had of
// the cache, which it does when no step of it is computed any more.
func left(t *testing.T, e *Engine) {
	t.Helper()
	require.Eventually(t, func() bool {
		s := e.Snapshot()
		return s.Open == 0 && s.Running+s.Waiting == 0 && s.KV.Used == 0
	}, patient, time.Millisecond)
}
